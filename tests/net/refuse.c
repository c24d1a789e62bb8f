/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Preloaded into the daemon: an older kernel's verifier. The detector's program is refused, with a
 * log and the errno that the kernel gives; every other call goes through. libbpf makes its calls by
 * syscall().
 */
#include <dlfcn.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

long syscall(long number, ...);

static int is_detector(long number, const long arg[6])
{
	const union bpf_attr *attr = (const union bpf_attr *)arg[1];

	return number == SYS_bpf && arg[0] == BPF_PROG_LOAD &&
	       strncmp(attr->prog_name, "pl_detect", strlen("pl_detect")) == 0;
}

long syscall(long number, ...)
{
	static long (*next)(long, ...);
	va_list list;
	long arg[6];

	va_start(list, number);
	for (int i = 0; i < 6; i++)
		arg[i] = va_arg(list, long);
	va_end(list);
	if (next == NULL)
		*(void **)&next = dlsym(RTLD_NEXT, "syscall");
	if (is_detector(number, arg)) {
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
