/* SPDX-License-Identifier: MIT */
/*
 * Descriptors that are ours in somebody else's process.
 *
 * Low numbers are the program's: where it has closed stdout, the next file that is opened becomes it, and must not be ours.
 * Programs also close descriptors that are not theirs (daemons, closefrom), and then use the numbers again. So ours are
 * moved up, out of the way, and before each use they are recognised by device, inode and, where the file system knows it, the
 * time at which the file was made, for an inode's number is given again; a file that was closed under our hands is opened
 * again, if its name still leads to the same file.
 *
 * Callers: records, shim/log.c, shim/link.c; any thread, signal handlers (rs_ownfd_get). No locks. errno may change.
 */
#ifndef RS_TRACKER_OWNFD_H
#define RS_TRACKER_OWNFD_H

#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

struct rs_ownfd {
	/*
	 * The number in the low half (-1: none), in the high half how often it changed: a file that is opened again often
	 * gets the number that it had, and who compares numbers alone takes another thread's new descriptor for the old one.
	 */
	_Atomic uint64_t at;
	struct rs_ownfd_file {
		dev_t dev;
		ino_t ino;
		int64_t born_s; /* 0: not known */
		uint32_t born_ns;
	} file;
	char *path; /* absolute; NULL: once it is gone it is gone */
};

#define RS_OWNFD_NONE                                                                              \
	{                                                                                          \
		.at = UINT32_MAX                                                                   \
	}

/*
 * Open a file to append to, and make it (0600); `is_new`: else that is -EEXIST. Waits for nobody at the other end of a
 * pipe. 0 or -errno.
 */
int rs_ownfd_open(struct rs_ownfd *o, const char *path, int is_new);
/* fd is ours from now on, and may be another number; on failure it is closed. 0 or -errno. */
int rs_ownfd_adopt(struct rs_ownfd *o, int fd);
/* The number to use now, or -1 with errno set: it is not there any more. */
int rs_ownfd_get(struct rs_ownfd *o);
/* Nobody else uses it meanwhile. What is not ours any more stays open. */
void rs_ownfd_close(struct rs_ownfd *o);

#endif
