/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a process can do no more in the sandbox, tried from inside, by its first thread and by one
 * that started afterwards. Each case is a process of its own, which says on standard error what was
 * refused.
 */
#include "base/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/have_seccomp.h"
#include "base/test.h"
#include "base/thread.h"

/* A service, one with programs in the kernel, and the keeper of rights. */
enum { SERVICE, PROGRAMS, HELPER, PROCESSES };
static const char *const processes[PROCESSES] = { "service", "with programs", "helper" };

static char folder[] = "/tmp/pl-sandbox-XXXXXX", inside[64], outside[64];

/* ---- attempts: 0, or the errno ---- */

static int result(long r)
{
	return r < 0 ? errno : 0;
}

static int try_exec(void)
{
	return result(execl("/bin/true", "true", NULL));
}

static int try_fork(void)
{
	const pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	return result(pid);
}

static int try_ptrace(void)
{
	return result(ptrace(PTRACE_TRACEME, 0, NULL, NULL));
}

static int try_mount(void)
{
	return result(mount("none", "/mnt", "tmpfs", 0, NULL));
}

static int try_unshare(void)
{
	return result(unshare(CLONE_NEWUSER));
}

static int try_setuid(void)
{
	return result(setresuid(65534, 65534, 65534));
}

static int try_io_uring(void)
{
	return result(syscall(SYS_io_uring_setup, 1, NULL));
}

static int try_process_memory(void)
{
	return result(syscall(SYS_process_vm_readv, 1, NULL, 0, NULL, 0, 0));
}

static int try_bpf_program(void)
{
	return result(syscall(SYS_bpf, BPF_PROG_LOAD, NULL, 0));
}

/* A number that means nothing: EBADF of the kernel says that the filter let it through. */
static int try_map(int command)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.map_fd = 999999;
	return result(syscall(SYS_bpf, command, &attr, sizeof(attr)));
}

static int try_bpf_map(void)
{
	return try_map(BPF_MAP_LOOKUP_ELEM);
}

static int try_bpf_take(void)
{
	return try_map(BPF_MAP_LOOKUP_AND_DELETE_ELEM);
}

static int try_udp(void)
{
	return result(socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
}

static int try_packet_socket(void)
{
	return result(socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0));
}

static int try_pin(void)
{
	cpu_set_t set;

	sched_getaffinity(0, sizeof(set), &set);
	return result(sched_setaffinity(0, sizeof(set), &set));
}

static int try_kill(void)
{
	return result(kill(getppid(), 0));
}

static int try_kill_itself(void)
{
	return result(kill(getpid(), 0));
}

static int try_module(void)
{
	return result(syscall(SYS_finit_module, -1, "", 0));
}

static int try_keys(void)
{
	return result(syscall(SYS_keyctl, 0, 0, 0, 0, 0));
}

static int try_library(void)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? errno : 0;
}

static int try_executable_memory(void)
{
	void *p = mmap(
		NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? errno : 0;
}

static int try_make_executable(void)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? -1 : result(mprotect(p, 4096, PROT_READ | PROT_EXEC));
}

static int try_type_into_terminal(void)
{
	return result(ioctl(STDIN_FILENO, TIOCSTI, "x"));
}

static int try_interface(void)
{
	struct ifreq req = { .ifr_name = "lo" };
	const int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	return s < 0 ? errno : result(ioctl(s, SIOCGIFINDEX, &req));
}

static int open_file(const char *path, int flags)
{
	const int fd = open(path, flags | O_CLOEXEC, 0600);

	if (fd >= 0)
		close(fd);
	return result(fd);
}

static int try_read_inside(void)
{
	return open_file(inside, O_RDONLY);
}

static int try_write_inside(void)
{
	return open_file(inside, O_RDWR);
}

static int try_create_inside(void)
{
	char path[80], other[80];
	int r;

	snprintf(path, sizeof(path), "%s/new", folder);
	snprintf(other, sizeof(other), "%s/other", folder);
	r = open_file(path, O_WRONLY | O_CREAT);
	if (r == 0)
		r = result(rename(path, other));
	return r == 0 ? result(unlink(other)) : r;
}

static int try_read_outside(void)
{
	return open_file(outside, O_RDONLY);
}

static int try_write_outside(void)
{
	return open_file(outside, O_WRONLY);
}

static int try_create_outside(void)
{
	return open_file("/tmp/pl-sandbox-outside-new", O_WRONLY | O_CREAT);
}

static int try_read_system(void)
{
	return open_file("/etc/passwd", O_RDONLY);
}

static int try_list_system(void)
{
	return open_file("/etc", O_RDONLY | O_DIRECTORY);
}

static int try_write_system(void)
{
	return open_file("/etc/passwd", O_WRONLY);
}

static int try_stat(void)
{
	struct stat st;

	return result(fstat(STDERR_FILENO, &st));
}

static void *return_it(void *arg)
{
	return arg;
}

static int try_thread(void)
{
	pthread_t t;
	const int r = -pl_thread_start(&t, "test", return_it, NULL);

	if (r == 0)
		pthread_join(t, NULL);
	return r;
}

/* ---- cases ---- */

enum { ENDS = 1000 };

struct attempt {
	const char *name; /* of the system call, where it is refused */
	int (*try)(void);
	int want[PROCESSES]; /* 0, an errno, ENDS: by SIGSYS, or -1: not tried */
};

static const struct attempt attempts[] = {
	{ "execve", try_exec, { ENDS, ENDS, ENDS } },
	{ "clone", try_fork, { ENDS, ENDS, ENDS } },
	{ "ptrace", try_ptrace, { ENDS, ENDS, ENDS } },
	{ "mount", try_mount, { ENDS, ENDS, ENDS } },
	{ "unshare", try_unshare, { ENDS, ENDS, ENDS } },
	{ "setresuid", try_setuid, { ENDS, ENDS, ENDS } },
	{ "io_uring_setup", try_io_uring, { ENDS, ENDS, ENDS } },
	{ "process_vm_readv", try_process_memory, { ENDS, ENDS, ENDS } },
	{ "finit_module", try_module, { ENDS, ENDS, ENDS } },
	{ "keyctl", try_keys, { ENDS, ENDS, ENDS } },
	{ "bpf", try_bpf_program, { ENDS, ENDS, ENDS } },
	{ "bpf", try_bpf_map, { ENDS, EBADF, ENDS } },
	{ "bpf", try_bpf_take, { ENDS, EBADF, ENDS } },
	{ "socket", try_udp, { 0, 0, ENDS } },
	{ "socket", try_packet_socket, { 0, 0, 0 } },
	{ "sched_setaffinity", try_pin, { 0, 0, ENDS } },
	{ "kill", try_kill, { ENDS, ENDS, ENDS } },
	{ "kill", try_kill_itself, { 0, 0, ENDS } },
	{ "mmap", try_executable_memory, { ENDS, ENDS, ENDS } },
	{ "mmap", try_library, { 0, 0, ENDS } },
	{ "mprotect", try_make_executable, { ENDS, ENDS, -1 } },
	{ "ioctl", try_type_into_terminal, { ENDS, ENDS, ENDS } },
	{ "ioctl", try_interface, { 0, 0, -1 } },
	{ "openat", try_read_inside, { 0, 0, ENDS } },
	{ "openat", try_write_inside, { 0, 0, ENDS } },
	{ "openat", try_create_inside, { 0, 0, ENDS } },
	{ "openat", try_read_outside, { EACCES, EACCES, ENDS } },
	{ "openat", try_write_outside, { EACCES, EACCES, ENDS } },
	{ "openat", try_create_outside, { EACCES, EACCES, ENDS } },
	{ "openat", try_read_system, { 0, 0, ENDS } },
	{ "openat", try_write_system, { EACCES, EACCES, ENDS } },
	{ "newfstatat", try_stat, { 0, 0, ENDS } },
	{ "clone", try_thread, { 0, 0, -1 } },
};

static bool as_nobody;
static int (*try_now)(void);

static void *in_thread(void *arg)
{
	(void)arg;
	return (void *)(intptr_t)try_now();
}

static void enter(int process)
{
	const struct pl_sandbox_path paths[] = { { folder, true },
		{ "/tmp/not/there/at/all", true } };
	const struct pl_sandbox_options options = { .programs = process == PROGRAMS,
		.helper = process == HELPER,
		.paths = paths,
		.n_paths = 2 };
	struct pl_sandbox_state state;

	if (as_nobody && setresuid(65534, 65534, 65534) < 0)
		_exit(97);
	if (pl_sandbox_enter(&options, &state, NULL) < 0)
		_exit(99);
}

static void attempt(int process, int (*try)(void), bool thread)
{
	pthread_t t;
	void *got;

	enter(process);
	try_now = try;
	if (!thread)
		_exit(try() & 0xff);
	if (pl_thread_start(&t, "test", in_thread, NULL) < 0)
		_exit(98);
	pthread_join(t, &got);
	_exit((int)(intptr_t)got & 0xff);
}

/* What came of it, and what it said. */
static int come_of(int process, int (*try)(void), bool thread, char said[512])
{
	int words[2], status, n = 0;
	ssize_t got;
	pid_t pid;

	if (pipe(words) < 0)
		return -1;
	pid = fork();
	if (pid == 0) {
		dup2(words[1], STDERR_FILENO);
		attempt(process, try, thread);
	}
	close(words[1]);
	while (n < 511 && (got = read(words[0], said + n, (size_t)(511 - n))) > 0)
		n += (int)got;
	said[n] = '\0';
	close(words[0]);
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	return WIFSIGNALED(status) ? (WTERMSIG(status) == SIGSYS ? ENDS : -WTERMSIG(status))
				   : WEXITSTATUS(status);
}

static void check(const struct attempt *a, int process, bool thread)
{
	const char *who = processes[process];
	const int want = a->want[process];
	char said[512], line[128], number[64];
	bool named;
	int got;

	if (want < 0)
		return;
	got = come_of(process, a->try, thread, said);
	ok(got == want, "%s: %s%s: %s%s", who, a->name, thread ? " in a later thread" : "",
		want == 0      ? "goes"
		: want == ENDS ? "ends the process"
			       : strerrorname_np(want),
		got == want ? "" : ", not what came of it");
	if (got != want)
		printf("# %d, not %d; it said: %s\n", got, want, said);
	/* The helper refuses calls that have no name in the list of refused ones. */
	snprintf(line, sizeof(line), "system call %s, and ends", a->name);
	snprintf(number, sizeof(number), "system call ");
	named = strstr(said, process == HELPER ? number : line) != NULL;
	ok(named == (want == ENDS), "%s: %s: %s", who, a->name,
		want == ENDS ? "is named" : "nothing is told");
	if (named != (want == ENDS))
		printf("# it said: %s\n", said);
}

static void test_processes(void)
{
	for (size_t i = 0; i < sizeof(attempts) / sizeof(attempts[0]); i++) {
		for (int thread = 0; thread < 2; thread++) {
			check(&attempts[i], SERVICE, thread == 1);
			check(&attempts[i], PROGRAMS, thread == 1);
		}
		check(&attempts[i], HELPER, false);
	}
}

/* The whole of /etc: its secrets are root's. */
static void test_etc(void)
{
	char said[512];

	if (geteuid() == 0)
		eq(come_of(SERVICE, try_list_system, false, said), EACCES,
			"root reads of /etc what is needed");
	as_nobody = geteuid() == 0;
	eq(come_of(SERVICE, try_list_system, false, said), 0, "another user what it may read");
	as_nobody = false;
}

/* ---- status and switch ---- */

static int held(void)
{
	return prctl(PR_GET_SECCOMP, 0, 0, 0, 0) + 10 * prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0);
}

/* With a switch, which only this process's child sees. */
static int switched(const char *word, int (*try)(void))
{
	char said[512];
	int r;

	setenv("PATHLINE_SANDBOX", word, 1);
	r = come_of(SERVICE, try, false, said);
	unsetenv("PATHLINE_SANDBOX");
	return r;
}

static void test_switch(void)
{
	eq(switched("on", held), 2 + 10, "filter and no_new_privs are in force");
	eq(switched("off", held), 0 + 10, "switched off: no filter, no_new_privs all the same");
	eq(switched("off", try_read_outside), 0, "and files are there");
	eq(switched("no-seccomp", held), 0 + 10, "without seccomp");
	eq(switched("no-seccomp", try_read_outside), EACCES, "files are still guarded");
	eq(switched("no-landlock", try_read_outside), 0, "without Landlock");
	eq(switched("no-landlock", try_mount), ENDS, "calls are still filtered");
	eq(switched("strict", held), 99, "another word is an error");
}

/* Whether this machine has both; else there is nothing to test. */
static const char *missing(void)
{
#if !PL_HAVE_SECCOMP
	return "libseccomp";
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	return "a build without sanitizers, which are let through more";
#else
	return syscall(444, NULL, 0, 1) > 0 ? NULL : "a kernel with Landlock";
#endif
}

int main(void)
{
	int fd;

	unsetenv("PATHLINE_SANDBOX");
	if (missing() != NULL) {
		printf("ok 1 # SKIP takes %s\n1..1\n", missing());
		return 0;
	}
	if (mkdtemp(folder) == NULL)
		return 1;
	snprintf(inside, sizeof(inside), "%s/file", folder);
	snprintf(outside, sizeof(outside), "%s-outside", folder);
	fd = creat(inside, 0600);
	close(fd);
	fd = creat(outside, 0600);
	close(fd);
	test_processes();
	test_etc();
	test_switch();
	unlink(inside);
	unlink(outside);
	rmdir(folder);
	return pl_test_done();
}
