/* SPDX-License-Identifier: BSD-2-Clause */
/* The helper: what it does for a process without privileges, and what it refuses to do. */
#include "netio/helper.h"

#include <errno.h>
#include <linux/bpf.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/privilege.h"
#include "base/test.h"

struct outcome {
	int started, dropped, xdp, packet, inet, link, bad_link, link_of_none, type;
	int stopped, during, after; /* helper stopped; results of requests then and afterwards */
};

/* Loads an XDP program that passes every frame. */
static int load(void)
{
	static const struct bpf_insn code[] = { { .code = 0xb7, .imm = 2 }, { .code = 0x95 } };
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.prog_type = BPF_PROG_TYPE_XDP;
	attr.insns = (uint64_t)(uintptr_t)code;
	attr.insn_cnt = 2;
	attr.license = (uint64_t)(uintptr_t) "GPL";
	return (int)syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));
}

/* Returns the only child of this process; 0: not known. */
static pid_t only_child(void)
{
	char name[64];
	int pid = 0;
	FILE *f;

	snprintf(name, sizeof(name), "/proc/self/task/%d/children", getpid());
	f = fopen(name, "re");
	if (f == NULL || fscanf(f, "%d", &pid) != 1)
		pid = 0;
	if (f != NULL)
		fclose(f);
	return pid;
}

/* Stops the helper for longer than its time-out: the late answer must not be taken for that to a
 * later request. */
static void ask_late(struct outcome *o, const struct pl_rights *rights)
{
	pid_t pid = only_child();

	o->stopped = pid > 0 && kill(pid, SIGSTOP) == 0;
	if (o->stopped != 1)
		return;
	o->during = rights->socket(rights, AF_XDP);
	kill(pid, SIGCONT);
	o->after = rights->socket(rights, AF_PACKET);
}

static void in_child(struct outcome *o, bool packet)
{
	struct pl_helper_options options = { .packet = packet, .user = "nobody" };
	struct pl_privilege_options nothing = { .user = "nobody" };
	const struct pl_rights *rights;
	socklen_t len = sizeof(o->type);
	struct pl_helper *h;
	int prog = load();

	o->started = pl_helper_start(&h, &options, NULL);
	if (o->started < 0)
		return;
	o->dropped = pl_privilege_drop(&nothing, NULL);
	rights = pl_helper_rights(h);
	o->xdp = rights->socket(rights, AF_XDP);
	if (o->xdp >= 0)
		getsockopt(o->xdp, SOL_SOCKET, SO_DOMAIN, &o->type, &len);
	o->packet = rights->socket(rights, AF_PACKET);
	o->inet = rights->socket(rights, AF_INET);
	/* The loopback takes XDP in generic mode; 2 is XDP_FLAGS_SKB_MODE. */
	o->link = rights->link(rights, prog, 1, PL_LINK_XDP, 2);
	o->bad_link = rights->link(rights, o->xdp, 1, PL_LINK_XDP, 2);
	o->link_of_none = rights->link(rights, prog, 0x7ffffff0, PL_LINK_XDP, 2);
	if (!packet)
		ask_late(o, rights);
	pl_helper_stop(h);
}

static struct outcome run(bool packet)
{
	struct outcome o = { .started = -EIO };
	int fds[2], status;
	pid_t pid;

	if (pipe(fds) < 0)
		abort();
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		in_child(&o, packet);
		_exit(write(fds[1], &o, sizeof(o)) == (ssize_t)sizeof(o) ? 0 : 1);
	}
	close(fds[1]);
	if (pid < 0 || read(fds[0], &o, sizeof(o)) != (ssize_t)sizeof(o) ||
		waitpid(pid, &status, 0) != pid || status != 0)
		o.started = -EIO;
	close(fds[0]);
	return o;
}

int main(void)
{
	struct outcome o;
	int prog;

	/* A program on the shared loopback would change the results of other tests. */
	if (geteuid() != 0 || unshare(CLONE_NEWNET) < 0)
		return pl_test_skip("needs root and network namespaces");
	prog = load();
	if (prog < 0)
		return pl_test_skip("this process may not load BPF programs");
	close(prog);
	o = run(false);
	eq(o.started, 0, "starts");
	eq(o.dropped, 0, "and the other process has no rights");
	ok(o.xdp >= 0, "gives an AF_XDP socket");
	eq(o.type, AF_XDP, "that is one");
	eq(-o.packet, EPERM, "gives no packet socket when no source needs one");
	ok(o.inet < 0, "nor any other");
	ok(o.link >= 0, "links a program to an interface (%d)", o.link);
	ok(o.bad_link < 0, "not what is no program");
	ok(o.link_of_none < 0, "nor a program to an interface that is not there");
	eq(o.stopped, 1, "it can be stopped");
	ok(o.during < 0, "who asks while it stands still gets nothing, after a while");
	ok(o.after < 0, "and the next question its own answer: no socket of that kind");
	o = run(true);
	ok(o.packet >= 0, "gives a packet socket when a source needs one");
	return pl_test_done();
}
