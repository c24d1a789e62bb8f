/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Preloaded into pathline: an older kernel. By default its verifier: the detector's program is
 * refused, with a log and the errno that the kernel gives. With REFUSE=tcx links of traffic control
 * are not known, as before Linux 6.6. With REFUSE=counts the tables of a tap that counts cannot be
 * read once it counts no more. Every other call goes through. libbpf makes its calls by syscall().
 */
#include <dlfcn.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

long syscall(long number, ...);

/* BPF_TCX_INGRESS and BPF_TCX_EGRESS, which older headers do not name. */
static int is_tcx(long number, const long arg[6])
{
	const union bpf_attr *attr = (const union bpf_attr *)arg[1];

	return number == SYS_bpf && arg[0] == BPF_LINK_CREATE &&
	       (attr->link_create.attach_type == 46 || attr->link_create.attach_type == 47);
}

static int is_detector(long number, const long arg[6])
{
	const union bpf_attr *attr = (const union bpf_attr *)arg[1];

	return number == SYS_bpf && arg[0] == BPF_PROG_LOAD &&
	       strncmp(attr->prog_name, "pl_detect", strlen("pl_detect")) == 0;
}

/* It stops by deleting the only entry that says which table is in force. */
static int is_last_read(long number, const long arg[6])
{
	static int stopped;

	if (number == SYS_bpf && arg[0] == BPF_MAP_DELETE_ELEM)
		stopped = 1;
	return stopped && number == SYS_bpf && arg[0] == BPF_MAP_LOOKUP_AND_DELETE_BATCH;
}

/* Six arguments are read whatever the call has; what lies behind its own the address sanitizer may
 * not judge. */
__attribute__((no_sanitize("address"))) long syscall(long number, ...)
{
	static long (*next)(long, ...);
	const char *what = getenv("REFUSE");
	const int tcx = what != NULL && strcmp(what, "tcx") == 0;
	const int counts = what != NULL && strcmp(what, "counts") == 0;
	va_list list;
	long arg[6];

	va_start(list, number);
	for (int i = 0; i < 6; i++)
		arg[i] = va_arg(list, long);
	va_end(list);
	if (next == NULL)
		*(void **)&next = dlsym(RTLD_NEXT, "syscall");
	if (tcx && is_tcx(number, arg)) {
		errno = EINVAL;
		return -1;
	}
	if (counts && is_last_read(number, arg)) {
		errno = EIO;
		return -1;
	}
	if (!tcx && !counts && is_detector(number, arg)) {
		const union bpf_attr *attr = (const union bpf_attr *)arg[1];

		if (attr->log_level != 0 && attr->log_buf != 0)
			snprintf((char *)(uintptr_t)attr->log_buf, attr->log_size,
				"R1 type=scalar expected=fp\nBPF program is too large. Processed 1000001 insn\n"
				"processed 1000001 insns (limit 1000000)\n");
		errno = E2BIG;
		return -1;
	}
	return next(number, arg[0], arg[1], arg[2], arg[3], arg[4], arg[5]);
}
