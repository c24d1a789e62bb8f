/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a process can do no more after it has dropped its rights, tried from inside, by its first
 * thread and by one that started afterwards. Each case is a process of its own.
 */
#include "base/privilege.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/test.h"

/* Attempts; each returns whether it succeeded. */

static bool try_shadow(void)
{
	return open("/etc/shadow", O_RDONLY | O_CLOEXEC) >= 0;
}

static bool try_write_passwd(void)
{
	return open("/etc/passwd", O_WRONLY | O_CLOEXEC) >= 0;
}

static bool try_packet(void)
{
	return socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL)) >= 0;
}

static bool try_xdp(void)
{
	return socket(AF_XDP, SOCK_RAW, 0) >= 0;
}

static bool try_raw_ip(void)
{
	return socket(AF_INET, SOCK_RAW, IPPROTO_ICMP) >= 0;
}

static bool try_bpf_program(void)
{
	/* r0 = 0; exit; as XDP */
	static const struct bpf_insn code[] = { { .code = 0xb7 }, { .code = 0x95 } };
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.prog_type = BPF_PROG_TYPE_XDP;
	attr.insns = (uint64_t)(uintptr_t)code;
	attr.insn_cnt = 2;
	attr.license = (uint64_t)(uintptr_t) "GPL";
	return syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr)) >= 0;
}

static bool try_setuid(void)
{
	return setresuid(0, 0, 0) == 0;
}

static bool try_setgid(void)
{
	return setresgid(0, 0, 0) == 0;
}

static bool try_mount(void)
{
	return mount("none", "/mnt", "tmpfs", 0, NULL) == 0;
}

static bool try_nice(void)
{
	return setpriority(PRIO_PROCESS, 0, -5) == 0;
}

static bool try_low_port(void)
{
	struct sockaddr_in sa = { .sin_family = AF_INET,
		.sin_port = htons(1),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	return bind(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0;
}

static bool try_core(void)
{
	return prctl(PR_GET_DUMPABLE) == 1;
}

static const struct attempt {
	const char *name;
	bool (*try)(void);
	bool root_may; /* user 0 owns the file; no capability is needed */
} attempts[] = {
	{ "open /etc/shadow", try_shadow, true },
	{ "write /etc/passwd", try_write_passwd, true },
	{ "a packet socket", try_packet, false },
	{ "an AF_XDP socket", try_xdp, false },
	{ "a raw IP socket", try_raw_ip, false },
	{ "load a BPF program", try_bpf_program, false },
	{ "become root", try_setuid, true },
	{ "take group 0", try_setgid, true },
	{ "mount", try_mount, false },
	{ "raise the priority", try_nice, false },
	{ "bind port 1", try_low_port, false },
	{ "be dumped", try_core, false },
};
enum { ATTEMPTS = sizeof(attempts) / sizeof(attempts[0]) };

struct outcome {
	int dropped; /* what pl_privilege_drop returned */
	bool first[ATTEMPTS], later[ATTEMPTS];
	uint64_t effective, bounding;
	int no_new_privs;
	char text[512];
};

static void *try_all(void *arg)
{
	bool *did = arg;

	for (int i = 0; i < ATTEMPTS; i++)
		did[i] = attempts[i].try();
	return NULL;
}

static void in_child(const struct pl_privilege_options *options, struct outcome *o)
{
	struct pl_diag diag = { .text = "" };
	pthread_t thread;

	o->dropped = pl_privilege_drop(options, &diag);
	snprintf(o->text, sizeof(o->text), "%s", diag.text);
	if (o->dropped < 0)
		return;
	if (pthread_create(&thread, NULL, try_all, o->later) == 0)
		pthread_join(thread, NULL);
	try_all(o->first);
	o->effective = pl_privilege_effective();
	for (unsigned int i = 0; i < 64; i++)
		o->bounding |= (uint64_t)(prctl(PR_CAPBSET_READ, i, 0, 0, 0) == 1) << i;
	o->no_new_privs = prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0);
}

static struct outcome run(const struct pl_privilege_options *options)
{
	struct outcome o = { .dropped = -EIO };
	int fds[2], status;
	pid_t pid;

	if (pipe(fds) < 0)
		abort();
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		in_child(options, &o);
		_exit(write(fds[1], &o, sizeof(o)) == (ssize_t)sizeof(o) ? 0 : 1);
	}
	close(fds[1]);
	if (pid < 0 || read(fds[0], &o, sizeof(o)) != (ssize_t)sizeof(o) ||
		waitpid(pid, &status, 0) != pid || status != 0)
		o.dropped = -EIO;
	close(fds[0]);
	return o;
}

static void test_denied(const char *name, const struct pl_privilege_options *options)
{
	struct outcome o = run(options);
	bool root = options->user == NULL && geteuid() == 0;

	if (!ok(o.dropped == 0, "%s: dropped", name)) {
		printf("# %s\n", o.text);
		return;
	}
	for (int i = 0; i < ATTEMPTS; i++) {
		if (root && attempts[i].root_may)
			continue;
		ok(!o.first[i] && !o.later[i], "%s: cannot %s", name, attempts[i].name);
	}
	eq(o.effective, 0, "%s: no capability", name);
	eq(o.no_new_privs, 1, "%s: no way to new ones", name);
	if (geteuid() == 0)
		eq(o.bounding, 0, "%s: empty bounding set", name);
}

static void *wait_for_ever(void *arg)
{
	(void)arg;
	pause();
	return NULL;
}

static void test_refused(void)
{
	struct pl_privilege_options nobody = { .user = "no-such-user" };
	struct pl_diag diag = { .text = "" };
	struct outcome o = run(&nobody);
	pthread_t thread;

	eq(-o.dropped, ESRCH, "no such user");
	streq(o.text, "there is no user 'no-such-user'");
	nobody = (struct pl_privilege_options){ .group = "no-such-group" };
	o = run(&nobody);
	eq(-o.dropped, ESRCH, "no such group");
	nobody = (struct pl_privilege_options){ .user = "4294967295" };
	o = run(&nobody);
	eq(-o.dropped, ESRCH, "the number that means no change is no user");
	ok(pl_privilege_user_exists("root") && pl_privilege_user_exists("12345"),
		"users there are");
	ok(!pl_privilege_user_exists("no-such-user") && !pl_privilege_group_exists(""),
		"and those there are not");
	if (pthread_create(&thread, NULL, wait_for_ever, NULL) != 0)
		abort();
	eq(-pl_privilege_drop(&(struct pl_privilege_options){ .keep = 0 }, &diag), EBUSY,
		"threads would keep theirs: refused");
	pthread_cancel(thread);
	pthread_join(thread, NULL);
}

int main(void)
{
	test_denied("as it is", &(struct pl_privilege_options){ .user = NULL });
	if (geteuid() == 0) {
		struct outcome o;

		test_denied("as nobody", &(struct pl_privilege_options){ .user = "nobody" });
		test_denied("as a number",
			&(struct pl_privilege_options){ .user = "54321", .group = "nogroup" });
		o = run(&(struct pl_privilege_options){
			.user = "nobody", .keep = PL_PRIVILEGE_NET_RAW });
		eq(o.effective, PL_PRIVILEGE_NET_RAW, "one is kept across the change of user");
		ok(o.first[2] && !o.first[0] && !o.first[6], "and that one only");
		o = run(&(struct pl_privilege_options){ .user = "nobody", .core_dumps = true });
		eq(o.dropped, 0, "core files may be had");
	} else {
		struct outcome o = run(&(struct pl_privilege_options){ .user = "root" });

		eq(-o.dropped, EPERM, "only root becomes somebody else");
	}
	test_refused();
	return pl_test_done();
}
