/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * XDP programs on a veth pair in a network namespace of the test's own: attached by link and, as on
 * kernels without links, by netlink, with the left-overs of a killed process; and the changes that
 * the link monitor reports. Needs root.
 */
#include "netio/xdp.c"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/test.h"
#include "netio/link.h"
#include "netio/test_veth.h"

#include "bpf/collect.skel.h" /* knows the types above only by name */

static int prog_fd;

static uint32_t attached(void)
{
	struct pl_xdp_state s;

	return pl_xdp_query((int)if_nametoindex("pln0"), &s) == 0 ? s.id : 0;
}

static void test_by_link(void)
{
	struct pl_diag diag = { .text = "" };
	struct pl_xdp *xdp = NULL, *second = NULL;
	struct pl_xdp_state state;
	int r;

	r = pl_xdp_attach(&xdp, "pln0", prog_fd, PL_XDP_AUTO, NULL, &diag);
	if (!ok(r == 0, "attaches: %s", diag.text))
		return;
	ok(xdp->native && xdp->link_fd >= 0, "native, by a link");
	r = pl_xdp_query(pl_xdp_ifindex(xdp), &state);
	ok(r == 0 && state.id != 0 && state.native, "what is attached is told");
	streq(state.name, "pl_collect", "by its name");
	eq(state.pid, getpid(), "and who holds it");
	for (int mode = PL_XDP_AUTO; mode <= PL_XDP_GENERIC; mode++) {
		r = pl_xdp_attach(&second, "pln0", prog_fd, (enum pl_xdp_mode)mode, NULL, &diag);
		ok(r == -EBUSY && strstr(diag.text,
					  "pln0 has an XDP program already: 'pl_collect'") ==
					  diag.text,
			"a second one is refused in mode %d: %s", mode, diag.text);
	}
	pl_xdp_detach(xdp);
	eq(attached(), 0, "nothing is left");
	r = pl_xdp_attach(&xdp, "pln0", prog_fd, PL_XDP_GENERIC, NULL, &diag);
	ok(r == 0 && !xdp->native, "generic, when asked for");
	pl_xdp_detach(xdp);
	r = pl_xdp_attach(&xdp, "nothere", prog_fd, PL_XDP_AUTO, NULL, &diag);
	ok(r == -ENODEV, "no such interface: %s", diag.text);
	pl_xdp_detach(NULL);
}

static int attach_note(struct pl_xdp *xdp)
{
	memset(xdp, 0, sizeof(*xdp));
	xdp->ifindex = (int)if_nametoindex("pln0");
	xdp->native = true;
	return attach_by_netlink(xdp, prog_fd);
}

static struct pl_xdp *on_heap(const struct pl_xdp *xdp)
{
	struct pl_xdp *copy = malloc(sizeof(*copy));

	if (copy == NULL)
		abort();
	*copy = *xdp;
	return copy;
}

/* Attaches in a process that is killed: a program attached by netlink stays. */
static void leave_one_behind(void)
{
	struct pl_xdp xdp;
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		if (attach_note(&xdp) != 0)
			_exit(1);
		raise(SIGKILL);
	}
	waitpid(pid, &status, 0);
	ok(WIFSIGNALED(status), "a process attaches by netlink and is killed");
}

/* Whoever owns the folder may have put a link in the note's place: no other file is written. */
static void test_planted_note(const char *note)
{
	char victim[160];
	struct pl_xdp xdp;
	struct stat st;
	int fd;

	/* Beside it, because a hard link stays within a file system. */
	snprintf(victim, sizeof(victim), "%s.XXXXXX", note);
	fd = mkstemp(victim);
	if (!ok(fd >= 0 && write(fd, "kept", 4) == 4, "a file of another program"))
		return;
	for (int hard = 0; hard < 2; hard++) {
		ok((hard ? link(victim, note) : symlink(victim, note)) == 0, "%s link to it",
			hard ? "a hard" : "a symbolic");
		ok(attach_note(&xdp) == 0, "attaches");
		ok(fstat(fd, &st) == 0 && st.st_size == 4, "the file is as it was");
		pl_xdp_detach(on_heap(&xdp));
		(void)unlink(note);
	}
	close(fd);
	(void)unlink(victim);
}

static void test_by_netlink(void)
{
	struct pl_diag diag = { .text = "" };
	struct pl_xdp xdp, other, *linked;
	char note[128];

	ok(attach_note(&xdp) == 0 && attached() == xdp.id, "attaches by netlink");
	memcpy(note, xdp.note, sizeof(note));
	ok(access(note, R_OK) == 0, "and leaves a note: %s", note);
	ok(attach_note(&other) < 0, "a second one is refused while the first lives");
	ok(pl_xdp_attach(&linked, "pln0", prog_fd, PL_XDP_AUTO, NULL, &diag) == -EBUSY &&
			strstr(diag.text, "(id ") != NULL,
		"by a link too: %s", diag.text);
	pl_xdp_detach(on_heap(&xdp));
	ok(attached() == 0 && access(note, R_OK) < 0, "program and note are gone");

	leave_one_behind();
	ok(attached() != 0 && access(note, R_OK) == 0, "its program and note stay");
	ok(attach_note(&xdp) == 0 && attached() == xdp.id, "the next start takes its place");
	/* A program that is not the note's is left alone. */
	pl_xdp_detach(on_heap(&xdp));
	leave_one_behind();
	{
		FILE *f = fopen(note, "we");

		fprintf(f, "%u 1 1\n", attached() + 1);
		fclose(f);
	}
	ok(attach_note(&other) < 0 && attached() != 0, "another's program is left alone");
	(void)bpf_xdp_detach((int)if_nametoindex("pln0"), XDP_FLAGS_DRV_MODE, NULL);
	(void)unlink(note);
	test_planted_note(note);
}

/* ---- the link monitor ---- */

static const char *const changes[] = { "same", "down", "up", "gone", "back", "renamed" };

/* Waits up to 60 s for the next change: a carrier takes a second, on a busy machine longer. */
static enum pl_link_change next(struct pl_link_monitor *m)
{
	uint64_t until = pl_clock_mono_ns() + UINT64_C(60000000000);

	while (pl_clock_mono_ns() < until) {
		enum pl_link_change change = pl_link_next(m);
		struct pollfd p = { .fd = m->fd, .events = POLLIN };

		if (change != PL_LINK_SAME)
			return change;
		(void)poll(&p, 1, 100);
	}
	return PL_LINK_SAME;
}

static void expect(struct pl_link_monitor *m, enum pl_link_change wanted, const char *what)
{
	streq(changes[next(m)], changes[wanted], "%s", what);
}

static int make_up(const char *name)
{
	int r = veth_make(name, "pln1", -1, 1);

	if (r == 0)
		r = pl_rtnl_up("pln1", true);
	return r == 0 ? pl_rtnl_up(name, true) : r;
}

static bool rename_to(const char *from, const char *to)
{
	char command[96];

	/* netio/rtnl_net.h cannot rename: only this test needs it. */
	snprintf(command, sizeof(command), "ip link set %s down && ip link set %s name %s", from,
		from, to);
	return system(command) == 0; /* NOLINT(cert-env33-c) */
}

static void test_monitor(void)
{
	struct pl_diag diag = { .text = "" };
	struct pl_link_monitor m;
	int old;

	ok(pl_link_open(&m, "pln9", &diag) == -ENODEV && m.fd < 0, "%s", diag.text);
	ok(pl_link_open(&m, "a/b", &diag) == -EINVAL, "%s", diag.text);
	ok(pl_link_open(&m, "", &diag) == -EINVAL, "%s", diag.text);
	ok(pl_link_open(&m, "a-name-of-16-char", &diag) == -EINVAL, "%s", diag.text);
	veth_remove("pln0");
	eq((uint64_t)make_up("pln0"), 0, "a new pair");
	if (!ok(pl_link_open(&m, "pln0", &diag) == 0, "a monitor: %s", diag.text))
		return;
	if (!m.up) /* the carrier comes a moment later */
		expect(&m, PL_LINK_UP, "has a carrier");
	eq((uint64_t)pl_rtnl_up("pln0", false), 0, "down");
	expect(&m, PL_LINK_DOWN, "tells down");
	eq((uint64_t)pl_rtnl_up("pln0", true), 0, "up");
	expect(&m, PL_LINK_UP, "tells up");
	pl_rtnl_up("pln1", false);
	expect(&m, PL_LINK_DOWN, "tells a lost carrier");
	pl_rtnl_up("pln1", true);
	expect(&m, PL_LINK_UP, "tells its return");
	ok(rename_to("pln0", "pln7"), "a new name");
	expect(&m, PL_LINK_DOWN, "tells down");
	expect(&m, PL_LINK_RENAMED, "tells the new name");
	streq(m.name, "pln7");
	pl_rtnl_up("pln7", true);
	expect(&m, PL_LINK_UP, "tells up under it");
	old = m.ifindex;
	eq((uint64_t)veth_remove("pln7"), 0, "removed");
	if (next(&m) == PL_LINK_DOWN)
		expect(&m, PL_LINK_GONE, "tells gone");
	eq((uint64_t)m.ifindex, 0, "and has no number");
	eq((uint64_t)make_up("pln7"), 0, "there again");
	expect(&m, PL_LINK_BACK, "tells back");
	ok(m.ifindex != 0 && m.ifindex != old, "under another number");
	pl_link_close(&m);
	veth_remove("pln7");
}

int main(void)
{
	struct pl_bpf_collect *skel;

	if (geteuid() != 0 || unshare(CLONE_NEWNET) < 0)
		return pl_test_skip("needs root and network namespaces");
	skel = pl_bpf_collect__open_and_load();
	if (skel == NULL)
		return pl_test_skip("the kernel lets no BPF program in");
	prog_fd = bpf_program__fd(skel->progs.pl_collect);
	if (!ok(make_up("pln0") == 0, "a veth pair"))
		return pl_test_done();
	test_by_link();
	test_by_netlink();
	test_monitor();
	pl_bpf_collect__destroy(skel);
	return pl_test_done();
}
