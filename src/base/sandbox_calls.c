/* SPDX-License-Identifier: BSD-2-Clause */
/* System calls, by a seccomp filter of libseccomp. */
#include <errno.h>

#include "base/have_seccomp.h"
#include "base/sandbox_internal.h"

#if PL_HAVE_SECCOMP

#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/sockios.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <ucontext.h>
#include <unistd.h>

#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41
#endif
#ifndef AF_XDP
#define AF_XDP 44
#endif
#ifndef SYS_SECCOMP /* of siginfo; the C library has it under another condition */
#define SYS_SECCOMP 1
#endif
#define NAMESPACES                                                                                 \
	(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |             \
		CLONE_NEWPID | CLONE_NEWNET)
#define RDMA_IOCTLS 0x1b00u /* the type of drivers/infiniband */
#define SOCK_IOCTLS 0x8900u
#define TYPE_MASK   0xff00u

enum { CALLS_MAX = 1024, NAME_BYTES = 28 };

/* ---- lists ---- */

static const char *const always[] = { "read", "readv", "write", "writev", "pread64", "preadv",
	"pwrite64", "pwritev", "preadv2", "pwritev2", "close", "close_range", "lseek", "dup",
	"dup2", "dup3", "fcntl", "poll", "ppoll", "select", "pselect6", "epoll_create",
	"epoll_create1", "epoll_ctl", "epoll_wait", "epoll_pwait", "epoll_pwait2", "eventfd2",
	"signalfd4", "timerfd_create", "timerfd_settime", "timerfd_gettime", "pipe", "pipe2",
	"fstat", "brk", "munmap", "mremap", "madvise", "mincore", "msync", "mlock", "mlock2",
	"munlock", "membarrier", "futex", "set_robust_list", "get_robust_list", "rseq",
	"set_tid_address", "exit", "exit_group", "gettid", "getpid", "getppid", "sched_yield",
	"sched_getaffinity", "sched_getparam", "sched_getscheduler", "sched_get_priority_min",
	"sched_get_priority_max", "nanosleep", "clock_nanosleep", "clock_gettime", "clock_getres",
	"gettimeofday", "time", "getrandom", "rt_sigaction", "rt_sigprocmask", "rt_sigreturn",
	"rt_sigpending", "rt_sigtimedwait", "rt_sigsuspend", "sigaltstack", "restart_syscall",
	"getrusage", "times", "uname", "sysinfo", "getcpu", "getrlimit", "getuid", "geteuid",
	"getgid", "getegid", "getresuid", "getresgid", "getgroups", "getpgrp", "getpgid", "getsid",
	"capget", NULL };

static const char *const reading[] = { "stat", "lstat", "newfstatat", "statx", "access",
	"faccessat", "faccessat2", "readlink", "readlinkat", "getdents64", "getcwd", "statfs",
	"fstatfs", "fadvise64", "flock", NULL };

static const char *const writing[] = { "open", "openat", "creat", "ftruncate", "fallocate", "fsync",
	"fdatasync", "sync_file_range", "rename", "renameat", "renameat2", "unlink", "unlinkat",
	"mkdir", "mkdirat", "rmdir", "link", "linkat", "chmod", "fchmod", "fchmodat", "fchown",
	"umask", "utimensat", "copy_file_range", "sendfile", NULL };

static const char *const network[] = { "connect", "bind", "listen", "accept", "accept4",
	"getsockname", "getpeername", "setsockopt", "getsockopt", "sendto", "recvfrom", "sendmsg",
	"recvmsg", "sendmmsg", "recvmmsg", "shutdown", NULL };

static const char *const clock_state[] = { "adjtimex", "clock_adjtime", NULL };

static const char *const pinning[] = { "sched_setaffinity", NULL };

/* The helper's end is waited for; a ring made anew goes to the memory near its device. */
static const char *const with_helper[] = { "wait4", "mbind", NULL };

static const char *const helping[] = { "read", "write", "close", "sendmsg", "recvmsg", "poll",
	"exit", "exit_group", "rt_sigreturn", "rt_sigprocmask", "getpid", "munmap", NULL };

/* Made by none of our programs once it runs; to ask for one is to be somebody else. */
static const char *const foreign[] = { "execve", "execveat", "fork", "vfork", "clone", "ptrace",
	"process_vm_readv", "process_vm_writev", "pidfd_getfd", "kcmp", "mount", "umount2",
	"move_mount", "open_tree", "fsopen", "fsmount", "mount_setattr", "pivot_root", "chroot",
	"unshare", "setns", "setuid", "setgid", "setreuid", "setregid", "setresuid", "setresgid",
	"setfsuid", "setfsgid", "setgroups", "capset", "init_module", "finit_module",
	"delete_module", "kexec_load", "kexec_file_load", "reboot", "swapon", "swapoff",
	"perf_event_open", "userfaultfd", "io_uring_setup", "io_uring_enter", "io_uring_register",
	"add_key", "request_key", "keyctl", "open_by_handle_at", "acct", "quotactl", "iopl",
	"ioperm", "modify_ldt", "settimeofday", "clock_settime", "adjtimex", "clock_adjtime",
	"sethostname", "setdomainname", "syslog", "personality", "vhangup", "mknod", "mknodat",
	NULL };

/* Of these, what sanitizers make at the end: a process that stops the threads and reads them. */
static const char *const sanitizing[] = { "ptrace", "clone", "fork", "vfork", "process_vm_readv",
	"personality", NULL };

/* ---- what is refused ---- */

/* Written before the filter is in force. */
static struct {
	char names[CALLS_MAX][NAME_BYTES];
	bool foreign[CALLS_MAX];
	bool strict; /* all are */
	void (*tell)(const char *text);
} known;

static atomic_bool told[CALLS_MAX];
static _Atomic uint64_t refused;

static void tell_plainly(const char *text)
{
	char line[256] = "pathline: ";
	const size_t begin = strlen(line), n = strnlen(text, sizeof(line) - begin - 1);

	memcpy(line + begin, text, n);
	line[begin + n] = '\n';
	(void)!write(STDERR_FILENO, line, begin + n + 1);
}

/* Only what a handler may call: strings by hand. */
static void say(int call, bool ends)
{
	static const char what[] = "the sandbox refused the system call ";
	const char *name = call >= 0 && call < CALLS_MAX ? known.names[call] : "";
	const char *end;
	char text[200];
	size_t n = sizeof(what) - 1;

	memcpy(text, what, n);
	if (name[0] != '\0') {
		memcpy(text + n, name, strlen(name));
		n += strlen(name);
	} else {
		char digits[12];
		size_t k = sizeof(digits);
		unsigned int v = (unsigned int)call;

		do
			digits[--k] = (char)('0' + v % 10);
		while ((v /= 10) != 0);
		memcpy(text + n, digits + k, sizeof(digits) - k);
		n += sizeof(digits) - k;
	}
	end = ends ? ", and ends the process: pathline makes no such call here"
		   : " (EPERM): please report this, with the version";
	memcpy(text + n, end, strlen(end) + 1);
	known.tell(text);
}

static void set_result(ucontext_t *context, long result)
{
#if defined(__x86_64__)
	context->uc_mcontext.gregs[REG_RAX] = result;
#elif defined(__aarch64__)
	context->uc_mcontext.regs[0] = (unsigned long long)result;
#else
#error "which register has the result of a system call? Build with -Dseccomp=disabled"
#endif
}

static void on_refused(int signo, siginfo_t *info, void *context)
{
	const int call = info->si_syscall, before = errno;
	const bool in_range = call >= 0 && call < CALLS_MAX;
	const bool ends =
		info->si_code != SYS_SECCOMP || known.strict || (in_range && known.foreign[call]);

	atomic_fetch_add_explicit(&refused, 1, memory_order_relaxed);
	if (ends || !in_range || !atomic_exchange_explicit(&told[call], true, memory_order_relaxed))
		say(call, ends);
	set_result(context, -EPERM);
	if (ends) {
		/* It is blocked until this returns. */
		(void)signal(signo, SIG_DFL);
		(void)raise(signo);
	}
	errno = before;
}

static void name_calls(void)
{
	for (int i = 0; i < CALLS_MAX; i++) {
		char *name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, i);

		if (name != NULL)
			snprintf(known.names[i], NAME_BYTES, "%s", name);
		free(name);
	}
	for (size_t i = 0; foreign[i] != NULL; i++) {
		const int call = seccomp_syscall_resolve_name(foreign[i]);

		if (call >= 0 && call < CALLS_MAX)
			known.foreign[call] = true;
	}
}

static int listen_to_refusals(void (*tell)(const char *text))
{
	const struct sigaction action = { .sa_sigaction = on_refused,
		.sa_flags = SA_SIGINFO | SA_RESTART };
	sigset_t own;

	known.tell = tell != NULL ? tell : tell_plainly;
	name_calls();
	if (sigaction(SIGSYS, &action, NULL) < 0)
		return -errno;
	sigemptyset(&own);
	sigaddset(&own, SIGSYS);
	return pthread_sigmask(SIG_UNBLOCK, &own, NULL) != 0 ? -EINVAL : 0;
}

/* ---- the filter ---- */

struct filter {
	scmp_filter_ctx context;
	int error;
};

/* Names that this architecture, or an older library, does not have are left out. */
static void allow_if(struct filter *f, const char *name, unsigned int n, struct scmp_arg_cmp cmp)
{
	const int call = seccomp_syscall_resolve_name(name);

	if (f->error == 0 && call >= 0)
		f->error = seccomp_rule_add_array(f->context, SCMP_ACT_ALLOW, call, n, &cmp);
	/* Allowed with fewer conditions already. */
	if (f->error == -EEXIST)
		f->error = 0;
}

static void allow(struct filter *f, const char *const *names)
{
	for (; *names != NULL; names++)
		allow_if(f, *names, 0, SCMP_A0(SCMP_CMP_EQ, 0));
}

/* The argument's bits of `mask` are `bits`. */
static struct scmp_arg_cmp bits(unsigned int arg, uint64_t mask, uint64_t wanted)
{
	return SCMP_CMP(arg, SCMP_CMP_MASKED_EQ, mask, wanted);
}

static struct scmp_arg_cmp is(unsigned int arg, uint64_t wanted)
{
	return SCMP_CMP(arg, SCMP_CMP_EQ, wanted);
}

static void allow_each(
	struct filter *f, const char *name, unsigned int arg, const unsigned int *values, size_t n)
{
	for (size_t i = 0; i < n; i++)
		allow_if(f, name, 1, is(arg, values[i]));
}

#define ALLOW_EACH(f, name, arg, values)                                                           \
	allow_each(f, name, arg, values, sizeof(values) / sizeof((values)[0]))

/* Memory is written or executed, never both; what is mapped stays as it is. Libraries of name
 * services are mapped late. */
static void allow_memory(struct filter *f)
{
	allow_if(f, "mmap", 1, bits(2, PROT_EXEC, 0));
	allow_if(f, "mmap", 1, bits(2, PROT_EXEC | PROT_WRITE, PROT_EXEC));
	allow_if(f, "mprotect", 1, bits(2, PROT_EXEC, 0));
}

/* New threads, signals to itself, limits to be read, its own name. */
static void allow_self(struct filter *f)
{
	static const unsigned int attributes[] = { PR_SET_NAME, PR_GET_NAME, PR_SET_VMA,
		PR_CAPBSET_READ, PR_GET_DUMPABLE, PR_GET_SECCOMP, PR_GET_NO_NEW_PRIVS };
	const int clone3 = seccomp_syscall_resolve_name("clone3");

	allow_if(f, "clone", 1, bits(0, CLONE_THREAD | NAMESPACES, CLONE_THREAD));
	/* Its arguments are out of a filter's sight; the C library then takes clone. */
	if (f->error == 0 && clone3 >= 0)
		f->error = seccomp_rule_add(f->context, SCMP_ACT_ERRNO(ENOSYS), clone3, 0);
	allow_if(f, "tgkill", 1, is(0, (uint64_t)getpid()));
	allow_if(f, "kill", 1, is(0, (uint64_t)getpid()));
	allow_if(f, "prlimit64", 1, is(2, 0));
	ALLOW_EACH(f, "prctl", 0, attributes);
}

/* Nothing that types into a terminal (TIOCSTI). */
static void allow_ioctls(struct filter *f, unsigned int calls)
{
	static const unsigned int terminal[] = { TCGETS, TCSETS, TCSETSW, TCSETSF, TCFLSH, TCXONC,
		TIOCGWINSZ, TIOCGPGRP, TIOCOUTQ, FIONREAD, FIONBIO, FIOCLEX };

	ALLOW_EACH(f, "ioctl", 1, terminal);
	if ((calls & PL_SANDBOX_NETWORK) != 0)
		allow_if(f, "ioctl", 1, bits(1, TYPE_MASK, SOCK_IOCTLS));
	if ((calls & PL_SANDBOX_RDMA) != 0)
		allow_if(f, "ioctl", 1, bits(1, TYPE_MASK, RDMA_IOCTLS));
}

static void allow_sockets(struct filter *f, unsigned int calls)
{
	static const unsigned int families[] = { AF_UNIX, AF_INET, AF_INET6, AF_NETLINK },
				  raw[] = { AF_PACKET, AF_XDP };

	if ((calls & PL_SANDBOX_NETWORK) != 0) {
		allow(f, network);
		ALLOW_EACH(f, "socket", 0, families);
		allow_if(f, "socketpair", 1, is(0, AF_UNIX));
	}
	if ((calls & PL_SANDBOX_RAW) != 0) {
		ALLOW_EACH(f, "socket", 0, raw);
		allow(f, with_helper);
	}
}

static void allow_bpf(struct filter *f)
{
	static const unsigned int commands[] = { BPF_MAP_LOOKUP_ELEM, BPF_MAP_UPDATE_ELEM,
		BPF_MAP_DELETE_ELEM, BPF_MAP_LOOKUP_AND_DELETE_ELEM, BPF_MAP_GET_NEXT_KEY,
		BPF_MAP_LOOKUP_BATCH, BPF_MAP_LOOKUP_AND_DELETE_BATCH, BPF_MAP_UPDATE_BATCH,
		BPF_MAP_DELETE_BATCH, BPF_OBJ_GET_INFO_BY_FD, BPF_LINK_CREATE, BPF_LINK_UPDATE,
		BPF_LINK_DETACH };

	ALLOW_EACH(f, "bpf", 0, commands);
}

static void allow_files(struct filter *f, unsigned int calls)
{
	const uint64_t writes = O_ACCMODE | O_CREAT | O_TRUNC | O_APPEND;

	if ((calls & (PL_SANDBOX_READ_FILES | PL_SANDBOX_WRITE_FILES)) != 0)
		allow(f, reading);
	else /* of what is open: the C library asks for it so */
		allow_if(f, "newfstatat", 1, bits(3, 0x1000 /* AT_EMPTY_PATH */, 0x1000));
	if ((calls & PL_SANDBOX_WRITE_FILES) != 0) {
		allow(f, writing);
	} else if ((calls & PL_SANDBOX_READ_FILES) != 0) {
		allow_if(f, "open", 1, bits(1, writes, O_RDONLY));
		allow_if(f, "openat", 1, bits(2, writes, O_RDONLY));
	}
}

/* Two kinds of sockets, and a link of a program to an interface. */
static void allow_helper(struct filter *f)
{
	static const unsigned int families[] = { AF_PACKET, AF_XDP },
				  commands[] = { BPF_LINK_CREATE };

	allow(f, helping);
	ALLOW_EACH(f, "socket", 0, families);
	ALLOW_EACH(f, "bpf", 0, commands);
	allow_if(f, "tgkill", 1, is(0, (uint64_t)getpid()));
	allow_if(f, "rt_sigaction", 1, is(0, SIGSYS));
	allow_if(f, "gettid", 0, is(0, 0));
}

static void allow_family(struct filter *f, unsigned int calls)
{
	if (calls == PL_SANDBOX_HELPER) {
		allow_helper(f);
	} else {
		allow(f, always);
		allow_memory(f);
		allow_self(f);
		allow_ioctls(f, calls);
		allow_files(f, calls);
		allow_sockets(f, calls);
		if ((calls & PL_SANDBOX_BPF) != 0)
			allow_bpf(f);
		if ((calls & PL_SANDBOX_PIN) != 0)
			allow(f, pinning);
		if ((calls & PL_SANDBOX_CLOCK) != 0)
			allow(f, clock_state);
	}
}

static bool is_in(const char *name, const char *const *names)
{
	for (; *names != NULL; names++) {
		if (strcmp(name, *names) == 0)
			return true;
	}
	return false;
}

/* A sanitizer's run-time makes calls of its own, in a process of its own and with signals blocked:
 * a build with one lets everything through but what is foreign to it too. */
static void refuse_foreign(struct filter *f, unsigned int calls)
{
	for (size_t i = 0; f->error == 0 && foreign[i] != NULL; i++) {
		const int call = seccomp_syscall_resolve_name(foreign[i]);

		if ((calls & PL_SANDBOX_CLOCK) != 0 && is_in(foreign[i], clock_state))
			continue;
		if (call >= 0 && !is_in(foreign[i], sanitizing))
			f->error = seccomp_rule_add(f->context, SCMP_ACT_TRAP, call, 0);
	}
}

static int set_up(struct filter *f)
{
	static const struct {
		enum scmp_filter_attr name;
		uint32_t value;
	} attributes[] = { { SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS },
		{ SCMP_FLTATR_CTL_TSYNC, 1 }, /* threads of libraries too */
		{ SCMP_FLTATR_CTL_SSB, 1 },   /* no slower memory for it: nothing foreign is run */
		{ SCMP_FLTATR_API_SYSRAWRC, 1 }, { SCMP_FLTATR_CTL_OPTIMIZE, 2 } };
	int r = 0;

	for (size_t i = 0; r == 0 && i < sizeof(attributes) / sizeof(attributes[0]); i++)
		r = seccomp_attr_set(f->context, attributes[i].name, attributes[i].value);
	return r;
}

int sandbox_calls_enter(const struct pl_sandbox_options *options, bool strict, struct pl_diag *diag)
{
	const bool sanitizer = SANDBOX_SANITIZER;
	struct filter f = { .context = seccomp_init(sanitizer ? SCMP_ACT_ALLOW : SCMP_ACT_TRAP) };

	if (f.context == NULL)
		return -ENOMEM;
	f.error = set_up(&f);
	if (f.error == 0)
		sanitizer ? refuse_foreign(&f, options->calls) : allow_family(&f, options->calls);
	known.strict = strict;
	if (f.error == 0)
		f.error = listen_to_refusals(options->tell);
	if (f.error == 0)
		f.error = seccomp_load(f.context);
	seccomp_release(f.context);
	/* A kernel without filters does not know the operation. */
	if (f.error == -EINVAL && prctl(PR_GET_SECCOMP, 0, 0, 0, 0) < 0)
		f.error = -ENOSYS;
	if (f.error < 0 && f.error != -ENOSYS)
		pl_diag_set(diag, "seccomp: %s; PATHLINE_SANDBOX=no-seccomp goes without",
			strerror(-f.error));
	return f.error;
}

uint64_t pl_sandbox_refused(void)
{
	return atomic_load_explicit(&refused, memory_order_relaxed);
}

const char *pl_sandbox_library(void)
{
	static char text[32];
	const struct scmp_version *v = seccomp_version();

	if (v != NULL)
		snprintf(text, sizeof(text), "%u.%u.%u", v->major, v->minor, v->micro);
	return text;
}

#else

int sandbox_calls_enter(const struct pl_sandbox_options *options, bool strict, struct pl_diag *diag)
{
	(void)options;
	(void)strict;
	(void)diag;
	return -ENOSYS;
}

uint64_t pl_sandbox_refused(void)
{
	return 0;
}

const char *pl_sandbox_library(void)
{
	return "none: libseccomp was missing";
}

#endif
