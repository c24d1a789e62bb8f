/* SPDX-License-Identifier: BSD-2-Clause */
/* System calls, by a seccomp filter of libseccomp. */
#include <errno.h>

#include "base/have_seccomp.h"
#include "base/sandbox_internal.h"

#if PL_HAVE_SECCOMP

#include <asm/ioctls.h>
#include <linux/bpf.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef AF_XDP
#define AF_XDP 44
#endif

/* Calls that no part of the program makes once it serves; only foreign code makes them. */
static const char *const refused[] = { "execve", "execveat", "fork", "vfork", "ptrace",
	"process_vm_readv", "process_vm_writev", "pidfd_getfd", "pidfd_send_signal", "kcmp",
	"mount", "umount2", "move_mount", "open_tree", "fsopen", "fsmount", "mount_setattr",
	"pivot_root", "chroot", "unshare", "setns", "setuid", "setgid", "setreuid", "setregid",
	"setresuid", "setresgid", "setfsuid", "setfsgid", "setgroups", "capset", "init_module",
	"finit_module", "delete_module", "kexec_load", "kexec_file_load", "reboot", "swapon",
	"swapoff", "perf_event_open", "userfaultfd", "io_uring_setup", "io_uring_enter",
	"io_uring_register", "add_key", "request_key", "keyctl", "open_by_handle_at", "acct",
	"quotactl", "iopl", "ioperm", "modify_ldt", "settimeofday", "clock_settime", "sethostname",
	"setdomainname", "syslog", "personality", "vhangup", "mknod", "mknodat" };
#define N_REFUSED (sizeof(refused) / sizeof(refused[0]))

/* Calls of which some are refused, by their arguments. */
static const char *const limited[] = { "bpf", "clone", "ioctl", "kill", "mmap", "mprotect",
	"tgkill" };
#define N_LIMITED (sizeof(limited) / sizeof(limited[0]))

/* Calls of these that sanitizers make at the end: a process that stops the threads and reads
 * them. */
static const char *const sanitizing[] = { "ptrace", "fork", "vfork", "process_vm_readv",
	"personality", NULL };

/* Commands of bpf(2) that a process with kernel programs does not need: it uses its maps and its
 * links. Nothing is loaded, pinned or opened by number any more. */
static const unsigned int no_program[] = { BPF_PROG_LOAD, BPF_BTF_LOAD, BPF_MAP_CREATE,
	BPF_PROG_ATTACH, BPF_PROG_DETACH, BPF_RAW_TRACEPOINT_OPEN, BPF_OBJ_PIN, BPF_OBJ_GET,
	BPF_PROG_GET_FD_BY_ID, BPF_MAP_GET_FD_BY_ID, BPF_LINK_GET_FD_BY_ID, BPF_BTF_GET_FD_BY_ID };

/* All calls of the keeper of rights. */
static const char *const helping[] = { "read", "write", "close", "sendmsg", "recvmsg", "poll",
	"exit", "exit_group", "rt_sigreturn", "rt_sigprocmask", "getpid", "gettid", "munmap",
	NULL };

/* ---- a call that is refused ---- */

/* Written before the filter is installed. */
static struct {
	int refused[N_REFUSED], limited[N_LIMITED];
	void (*tell)(const char *text);
} known;

static void tell_plainly(const char *text)
{
	char line[256] = "pathline: ";
	const size_t begin = strlen(line), n = strnlen(text, sizeof(line) - begin - 1);

	memcpy(line + begin, text, n);
	line[begin + n] = '\n';
	(void)!write(STDERR_FILENO, line, begin + n + 1);
}

/* Appends a text by hand, since a handler may call little. */
static char *add(char *at, const char *text)
{
	const size_t n = strlen(text);

	memcpy(at, text, n + 1);
	return at + n;
}

static char *add_number(char *at, unsigned int v)
{
	char digits[12], *d = digits + sizeof(digits) - 1;

	*d = '\0';
	do
		*--d = (char)('0' + v % 10);
	while ((v /= 10) != 0);
	return add(at, d);
}

/* Name of a call; NULL when it has none here. */
static const char *name_of(int call)
{
	for (size_t i = 0; i < N_REFUSED; i++) {
		if (known.refused[i] == call)
			return refused[i];
	}
	for (size_t i = 0; i < N_LIMITED; i++) {
		if (known.limited[i] == call)
			return limited[i];
	}
	return NULL;
}

static void on_refused(int signo, siginfo_t *info, void *context)
{
	char text[160], *at = add(text, "the sandbox refused the system call ");
	const char *name = name_of(info->si_syscall);

	(void)context;
	at = name != NULL ? add(at, name) : add_number(at, (unsigned int)info->si_syscall);
	(void)add(at, ", and ends the process: pathline makes no such call here");
	known.tell(text);
	/* The signal is blocked until this returns. */
	(void)signal(signo, SIG_DFL);
	(void)raise(signo);
}

static int listen_to_refusals(void (*tell)(const char *text))
{
	const struct sigaction action = { .sa_sigaction = on_refused, .sa_flags = SA_SIGINFO };
	sigset_t own;

	known.tell = tell != NULL ? tell : tell_plainly;
	for (size_t i = 0; i < N_REFUSED; i++)
		known.refused[i] = seccomp_syscall_resolve_name(refused[i]);
	for (size_t i = 0; i < N_LIMITED; i++)
		known.limited[i] = seccomp_syscall_resolve_name(limited[i]);
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

/* A rule for a call by its name. Names that this architecture, or an older library, does not have are left out. */
static void rule(struct filter *f, uint32_t action, const char *name, unsigned int n,
	const struct scmp_arg_cmp *cmp)
{
	const int call = seccomp_syscall_resolve_name(name);

	if (f->error == 0 && call >= 0)
		f->error = seccomp_rule_add_array(f->context, action, call, n, cmp);
	/* The rule exists already, with fewer conditions. */
	if (f->error == -EEXIST)
		f->error = 0;
}

/* Refused where the argument's bits of `mask` are `bits`. */
static void refuse_bits(
	struct filter *f, const char *name, unsigned int arg, uint64_t mask, uint64_t bits)
{
	rule(f, SCMP_ACT_TRAP, name, 1, &SCMP_CMP(arg, SCMP_CMP_MASKED_EQ, mask, bits));
}

static void refuse_is(struct filter *f, const char *name, unsigned int arg, uint64_t value)
{
	rule(f, SCMP_ACT_TRAP, name, 1, &SCMP_CMP(arg, SCMP_CMP_EQ, value));
}

static void allow_is(struct filter *f, const char *name, unsigned int arg, uint64_t value)
{
	rule(f, SCMP_ACT_ALLOW, name, 1, &SCMP_CMP(arg, SCMP_CMP_EQ, value));
}

static bool is_in(const char *name, const char *const *names)
{
	for (; *names != NULL; names++) {
		if (strcmp(name, *names) == 0)
			return true;
	}
	return false;
}

/* A sanitizer's run-time makes a process of its own, and its memory is its own matter. */
static void refuse_always(struct filter *f)
{
	for (size_t i = 0; i < N_REFUSED; i++) {
		if (!SANDBOX_SANITIZER || !is_in(refused[i], sanitizing))
			rule(f, SCMP_ACT_TRAP, refused[i], 0, NULL);
	}
	/* No call that types into a terminal. */
	refuse_is(f, "ioctl", 1, TIOCSTI);
	if (SANDBOX_SANITIZER)
		return;
	/* A new process. Arguments of clone3 are out of a filter's sight; the C library then takes clone. */
	refuse_bits(f, "clone", 0, CLONE_THREAD, 0);
	rule(f, SCMP_ACT_ERRNO(ENOSYS), "clone3", 0, NULL);
	/* Memory is writable or executable, never both; mapped memory stays as it is. */
	refuse_bits(f, "mmap", 2, PROT_EXEC | PROT_WRITE, PROT_EXEC | PROT_WRITE);
	refuse_bits(f, "mprotect", 2, PROT_EXEC, PROT_EXEC);
	/* Signals to others. */
	rule(f, SCMP_ACT_TRAP, "kill", 1, &SCMP_A0(SCMP_CMP_NE, (uint64_t)getpid()));
	rule(f, SCMP_ACT_TRAP, "tgkill", 1, &SCMP_A0(SCMP_CMP_NE, (uint64_t)getpid()));
}

static void refuse_programs(struct filter *f, bool has_programs)
{
	if (!has_programs)
		rule(f, SCMP_ACT_TRAP, "bpf", 0, NULL);
	for (size_t i = 0; has_programs && i < sizeof(no_program) / sizeof(no_program[0]); i++)
		refuse_is(f, "bpf", 0, no_program[i]);
}

/* Two kinds of sockets, and a link of a program to an interface. */
static void allow_helper(struct filter *f)
{
	for (size_t i = 0; helping[i] != NULL; i++)
		rule(f, SCMP_ACT_ALLOW, helping[i], 0, NULL);
	allow_is(f, "socket", 0, AF_PACKET);
	allow_is(f, "socket", 0, AF_XDP);
	allow_is(f, "bpf", 0, BPF_LINK_CREATE);
	allow_is(f, "tgkill", 0, (uint64_t)getpid());
	allow_is(f, "rt_sigaction", 0, SIGSYS);
}

static int set_up(struct filter *f)
{
	static const struct {
		enum scmp_filter_attr name;
		uint32_t value;
	} attributes[] = { { SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS },
		{ SCMP_FLTATR_CTL_TSYNC, 1 }, /* threads of libraries too */
		{ SCMP_FLTATR_CTL_SSB, 1 },   /* no slower memory for it: nothing foreign runs */
		{ SCMP_FLTATR_API_SYSRAWRC, 1 }, { SCMP_FLTATR_CTL_OPTIMIZE, 2 } };
	int r = 0;

	for (size_t i = 0; r == 0 && i < sizeof(attributes) / sizeof(attributes[0]); i++)
		r = seccomp_attr_set(f->context, attributes[i].name, attributes[i].value);
	return r;
}

int sandbox_calls_enter(const struct pl_sandbox_options *options, struct pl_diag *diag)
{
	const bool helper = options->helper && !SANDBOX_SANITIZER;
	struct filter f = { .context = seccomp_init(helper ? SCMP_ACT_TRAP : SCMP_ACT_ALLOW) };

	if (f.context == NULL)
		return -ENOMEM;
	f.error = set_up(&f);
	if (helper) {
		allow_helper(&f);
	} else {
		refuse_always(&f);
		refuse_programs(&f, options->programs || options->helper);
	}
	if (f.error == 0)
		f.error = listen_to_refusals(options->tell);
	if (f.error == 0)
		f.error = seccomp_load(f.context);
	seccomp_release(f.context);
	/* A kernel without filters does not know the operation. */
	if (f.error == -EINVAL && prctl(PR_GET_SECCOMP, 0, 0, 0, 0) < 0)
		f.error = -ENOSYS;
	if (f.error < 0 && f.error != -ENOSYS)
		pl_diag_set(diag, "seccomp: %s; PATHLINE_SANDBOX=no-seccomp runs without it",
			strerror(-f.error));
	return f.error;
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

int sandbox_calls_enter(const struct pl_sandbox_options *options, struct pl_diag *diag)
{
	(void)options;
	(void)diag;
	return -ENOSYS;
}

const char *pl_sandbox_library(void)
{
	return "none: libseccomp was missing";
}

#endif
