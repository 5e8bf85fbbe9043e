package folder

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// inPlace are the file systems that write a changed page where it was allocated (statfs(2)), so that writing to a mapped
// file never fails for want of space. Everywhere else a ring may kill the training process by SIGBUS: file systems that
// copy on write want new space for every page (seen on btrfs with a full disk), and those of the network may lose theirs.
var inPlace = map[uint32]bool{
	unix.TMPFS_MAGIC: true, unix.RAMFS_MAGIC: true, unix.EXT4_SUPER_MAGIC: true, unix.XFS_SUPER_MAGIC: true,
	unix.OVERLAYFS_SUPER_MAGIC: true, // if what lies below does
}

// otherNames are for the message only.
var otherNames = map[uint32]string{
	unix.NFS_SUPER_MAGIC: "NFS", unix.FUSE_SUPER_MAGIC: "FUSE", unix.SMB_SUPER_MAGIC: "SMB", unix.CIFS_SUPER_MAGIC: "CIFS",
	unix.SMB2_SUPER_MAGIC: "SMB2", unix.V9FS_MAGIC: "9P", unix.AFS_SUPER_MAGIC: "AFS", unix.CEPH_SUPER_MAGIC: "Ceph",
	0x0bd00bd0: "Lustre", 0x47504653: "GPFS", unix.BTRFS_SUPER_MAGIC: "btrfs", 0x2fc12fc1: "ZFS", 0xca451a4e: "bcachefs",
}

// mappable refuses folders in which writing to a mapped file can stall or kill the process.
func mappable(dir string) error {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return fmt.Errorf("looking at %s: %w", dir, err)
	}
	if err := writesInPlace(uint32(s.Type)); err != nil {
		return fmt.Errorf("%s is on %w", dir, err)
	}
	if uint32(s.Type) == unix.OVERLAYFS_SUPER_MAGIC && copiesOnWrite(dir) {
		return fmt.Errorf("%s lies over a file system that copies on write, where a mapped file can kill the job", dir)
	}
	return nil
}

func writesInPlace(magic uint32) error {
	if inPlace[magic] {
		return nil
	}
	name := otherNames[magic]
	if name == "" {
		name = fmt.Sprintf("a file system of type %#x", magic)
	}
	return fmt.Errorf("%s, where a mapped file can stall or kill the job", name)
}

// copiesOnWrite asks what lies below an overlay, which hides its kind: only there can a file be told not to be copied
// (ioctl_iflags(2), FS_NOCOW_FL).
func copiesOnWrite(dir string) bool {
	const noCopy = 0x00800000
	f, err := os.CreateTemp(dir, ".datawait-*")
	if err != nil {
		return false // nor can a ring be made
	}
	defer os.Remove(f.Name())
	defer f.Close()
	return unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, noCopy) == nil
}
