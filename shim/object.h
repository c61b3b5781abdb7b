/* SPDX-License-Identifier: MIT */
/*
 * A loaded object's imports, as far as they concern the driver.
 *
 * An object of our own namespace is read where it lies: the caller holds the loader's lock. One of another namespace
 * may be unmapped at any time and is read through /proc/self/mem, where that is an error and no fault.
 */
#ifndef RS_SHIM_OBJECT_H
#define RS_SHIM_OBJECT_H

#include <stddef.h>
#include <stdint.h>

struct rs_object {
	uintptr_t bias;
	int fd; /* of /proc/self/mem, or -1 */
	const char *name;
	/* from the dynamic section */
	uintptr_t symtab, strtab, rela, jmprel, soname;
	size_t relasz, pltrelsz;
};

/* Reads the dynamic section at addr. 0: there is nothing to be read. */
int rs_object_dynamic(struct rs_object *im, uintptr_t addr);
/* The object mapped at start, read through fd. 0: that is none. */
int rs_object_open(struct rs_object *im, const char *path, uintptr_t start, int fd);
/* By its soname or file name. */
int rs_object_is_driver(const struct rs_object *im);
/*
 * The next slot in a table of relocations whose symbol is imported and concerns us. 0: none, 1: for a look-up function,
 * 2: for a function that we wrap.
 */
int rs_object_slot(const struct rs_object *im, uintptr_t table, size_t bytes, size_t *pos,
		   char *name, size_t size, uintptr_t *ret_slot);
/* The first function that it imports and we know, a driver's if there is one; "": none. */
void rs_object_imports(const struct rs_object *im, char what[128]);

#endif
