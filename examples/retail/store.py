"""A client for the object store: one keep-alive HTTP connection per process, as an S3 SDK keeps."""

import http.client
import os
import urllib.parse


class Store:
    """Reads and writes whole objects. Safe to create before a fork: each process opens its own connection."""

    def __init__(self, url):
        parts = urllib.parse.urlsplit(url)
        self.host, self.port = parts.hostname, parts.port
        self._connection = None
        self._owner = None

    def __getstate__(self):
        return {"host": self.host, "port": self.port, "_connection": None, "_owner": None}

    def _connect(self):
        if self._connection is None or self._owner != os.getpid():
            self._connection = http.client.HTTPConnection(self.host, self.port, timeout=30)
            self._owner = os.getpid()
        return self._connection

    def get(self, key):
        return self._request("GET", key, None)

    def put(self, key, body):
        self._request("PUT", key, body)

    def _request(self, method, key, body):
        connection = self._connect()
        try:
            connection.request(method, "/" + key, body=body)
            response = connection.getresponse()
            data = response.read()
        except (OSError, http.client.HTTPException):
            connection.close()
            self._connection = None
            raise
        if response.status >= 300:
            raise RuntimeError("%s %s: HTTP %d" % (method, key, response.status))
        return data
