# Runs at the start of every Python that inherits PYTHONPATH, so it must work on any version, print nothing and never
# fail. It lets the sitecustomize that it hides (Debian ships one) run first, then arms the hook if asked to.
import os
import sys


def _hidden():
    """Where the sitecustomize lies that this one hides, None where there is none."""
    import importlib.machinery
    import importlib.util

    here = os.path.dirname(os.path.abspath(__file__))
    path = [entry for entry in sys.path if os.path.abspath(entry or os.curdir) != here]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", path)
    return spec if spec is not None and spec.loader is not None else None


def _chain():
    try:
        spec = _hidden() if sys.version_info >= (3, 4) else None
    except Exception:
        return
    if spec is not None:
        import importlib.util

        module = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)  # what goes wrong in there would have gone wrong without us


def _arm():
    spool = os.environ.get("DATAWAIT_SPOOL")
    if not spool or os.environ.get("DATAWAIT_HOOK") == "off" or sys.version_info < (3, 8):
        return
    try:
        _seen(spool)
    except Exception:
        pass
    try:
        from datawait.arming import install

        install(explicit=False)
    except Exception as error:
        _refused(spool, error)


def _seen(spool):
    # Says that this Python ran the hook; a process that never fetches writes nothing more.
    if _shared(spool):
        return
    flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)
    seen = os.open(os.path.join(spool, "seen-%d" % os.getpid()), flags, 0o600)
    os.fchmod(seen, 0o600)  # whatever the umask takes away
    os.close(seen)


def _shared(spool):
    # Where others may write, a file of every Python of the machine would pile up.
    return os.stat(spool).st_mode & 0o022


def _refused(spool, error):
    if _shared(spool):
        return
    with open(os.path.join(spool, "seen-%d" % os.getpid()), "a") as seen:
        seen.write("refused: %s: %s\n" % (type(error).__name__, " ".join(str(error).split())))


try:
    _chain()
finally:
    try:
        _arm()
    except Exception:
        pass
