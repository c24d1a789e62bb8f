/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes the namespaces, links, addresses and routes of a lab. */
#include "lab/build.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "lab/change.h"
#include "netio/rtnl_net.h"

#define NETNS_FOLDER "/run/netns"
#define OWN_NETNS    "/proc/thread-self/ns/net"

static void netns_path(const struct pl_lab_plan *p, unsigned int node,
	char ret[sizeof(NETNS_FOLDER) + 1 + PL_LAB_NETNS_MAX])
{
	char name[PL_LAB_NETNS_MAX];

	pl_lab_netns_name(p->t, node, name);
	snprintf(ret, sizeof(NETNS_FOLDER) + 1 + PL_LAB_NETNS_MAX, "%s/%s", NETNS_FOLDER, name);
}

/* Sets up the folder as iproute2 does. If iproute2 made it a mount point later, the namespaces
 * mounted in it would be mounted twice. */
int pl_lab_netns_folder(struct pl_diag *diag)
{
	int r = 0;

	if (mkdir(NETNS_FOLDER, 0755) < 0 && errno != EEXIST)
		r = -errno;
	if (r == 0 && mount("", NETNS_FOLDER, "none", MS_SHARED | MS_REC, NULL) < 0) {
		if (mount(NETNS_FOLDER, NETNS_FOLDER, "none", MS_BIND | MS_REC, NULL) < 0 ||
			mount("", NETNS_FOLDER, "none", MS_SHARED | MS_REC, NULL) < 0)
			r = -errno;
	}
	if (r < 0)
		pl_diag_set(diag, "%s: %s", NETNS_FOLDER, strerrordesc_np(-r));
	return r;
}

int pl_lab_check_names(const struct pl_lab_plan *plan, struct pl_diag *diag)
{
	char path[sizeof(NETNS_FOLDER) + 1 + PL_LAB_NETNS_MAX];

	for (unsigned int i = 0; i < plan->t->n_nodes + plan->wires; i++) {
		netns_path(plan, i, path);
		if (access(path, F_OK) < 0 && errno == ENOENT)
			continue;
		pl_diag_set(diag,
			"there is a network namespace '%s' already, and not of a lab: give the lab another \"name\", or remove it with ip netns delete",
			path + sizeof(NETNS_FOLDER));
		return -EEXIST;
	}
	return 0;
}

static int enter(const struct pl_lab_build *b, unsigned int node)
{
	return setns(b->ns[node], CLONE_NEWNET) < 0 ? -errno : 0;
}

static int name_namespace(const struct pl_lab_build *b, unsigned int node)
{
	char path[sizeof(NETNS_FOLDER) + 1 + PL_LAB_NETNS_MAX];
	int fd, r = 0;

	netns_path(b->plan, node, path);
	if (b->state != NULL)
		r = pl_lab_state_note(b->state, path + sizeof(NETNS_FOLDER));
	if (r < 0)
		return r;
	fd = open(path, O_RDONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
	if (fd < 0) {
		r = -errno;
		/* Somebody took the name after pl_lab_check_names: the lab must not remove it. */
		if (b->state != NULL)
			pl_lab_state_take_back(b->state, path + sizeof(NETNS_FOLDER));
		return r;
	}
	close(fd);
	return mount(OWN_NETNS, path, "none", MS_BIND, NULL) < 0 ? -errno : 0;
}

static int make_namespace(struct pl_lab_build *b, unsigned int node)
{
	int r;

	if (unshare(CLONE_NEWNET) < 0)
		return -errno;
	b->ns[node] = open(OWN_NETNS, O_RDONLY | O_CLOEXEC);
	if (b->ns[node] < 0)
		return -errno;
	r = name_namespace(b, node);
	return r == 0 ? pl_rtnl_up("lo", true) : r;
}

/* A missing sysctl is no error: a kernel without IPv6, or an older one, lacks some. Steps that need
 * one then fail themselves. */
static int set_sysctl(const char *name, const char *value)
{
	char path[128];
	int fd, r = 0;

	snprintf(path, sizeof(path), "/proc/sys/%s", name);
	for (char *c = path; *c != '\0'; c++) {
		if (*c == '.')
			*c = '/';
	}
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	if (write(fd, value, strlen(value)) < 0)
		r = -errno;
	close(fd);
	return r;
}

static int make_link(const struct pl_lab_build *b, const struct pl_lab_link *l)
{
	struct pl_rtnl_end ends[2];

	for (unsigned int side = 0; side < 2; side++)
		ends[side] = (struct pl_rtnl_end){ .name = l->end[side].interface,
			.mac = l->end[side].mac,
			.ns = b->ns[l->end[side].node] };
	return pl_rtnl_veth_between(&ends[0], &ends[1]);
}

/* Makes the node's interface and its peer among the wires, which is up at once. */
static int make_wire(const struct pl_lab_build *b, const struct pl_lab_step *s)
{
	const struct pl_lab_end *e = &b->plan->t->links[s->link].end[s->side];
	const unsigned int wires = b->plan->t->n_nodes;
	char name[IF_NAMESIZE];
	struct pl_rtnl_end ends[2] = { { e->interface, e->mac, b->ns[s->node] },
		{ name, NULL, b->ns[wires] } };
	int r;

	pl_lab_wire_name(s->link, s->side, name);
	r = pl_rtnl_veth_between(&ends[0], &ends[1]);
	if (r == 0)
		r = enter(b, wires);
	if (r == 0)
		r = pl_rtnl_no_offload(name);
	return r == 0 ? pl_rtnl_up(name, true) : r;
}

static int make_route(const struct pl_lab_build *b, const struct pl_lab_step *s)
{
	const struct pl_lab_topology *t = b->plan->t;
	struct pl_rtnl_hop hops[PL_RTNL_HOPS_MAX];

	_Static_assert(PL_RTNL_HOPS_MAX >= PL_LAB_PORTS_MAX, "a route by every port");
	for (unsigned int i = 0; i < s->n_ports; i++) {
		unsigned int port = b->plan->ports[s->first_port + i];
		const struct pl_lab_link *l = &t->links[t->nodes[s->node].links[port - 1]];
		unsigned int side = l->end[0].node != s->node;
		const struct pl_lab_end *peer = &l->end[!side];

		hops[i].interface = l->end[side].interface;
		hops[i].via = pl_addr_is_v4(&s->addr) ? &peer->v4 : &peer->v6;
	}
	return pl_rtnl_route(&s->addr, s->bits, hops, s->n_ports);
}

/* Sets the MTU of this end and of its peer among the wires, which frames pass too. */
static int set_mtu(const struct pl_lab_build *b, const struct pl_lab_step *s)
{
	const struct pl_lab_link *l = &b->plan->t->links[s->link];
	char name[IF_NAMESIZE];
	int r = pl_rtnl_mtu(l->end[s->side].interface, s->bits);

	if (r < 0 || l->quality.bare)
		return r;
	pl_lab_wire_name(s->link, s->side, name);
	r = enter(b, b->plan->t->n_nodes);
	return r == 0 ? pl_rtnl_mtu(name, s->bits) : r;
}

static int do_step(struct pl_lab_build *b, const struct pl_lab_step *s)
{
	const struct pl_lab_link *l = &b->plan->t->links[s->link];
	const struct pl_lab_end *e = &l->end[s->side];
	int r = s->kind == PL_LAB_NETNS ? 0 : enter(b, s->node);

	if (r < 0)
		return r;
	switch (s->kind) {
	case PL_LAB_NETNS:
		return make_namespace(b, s->node);
	case PL_LAB_SYSCTL:
		return set_sysctl(s->sysctl, s->value);
	case PL_LAB_VETH:
		return make_link(b, l);
	case PL_LAB_WIRE:
		return make_wire(b, s);
	case PL_LAB_OFFLOAD:
		return pl_rtnl_no_offload(e->interface);
	case PL_LAB_ADDRESS:
		return pl_rtnl_address(s->loopback ? "lo" : e->interface, &s->addr, s->bits);
	case PL_LAB_UP:
		return pl_rtnl_up(e->interface, true);
	case PL_LAB_NEIGHBOUR:
		return pl_rtnl_neighbour(e->interface, &s->addr, l->end[!s->side].mac);
	case PL_LAB_ROUTE:
		return make_route(b, s);
	case PL_LAB_RATE:
		return pl_rtnl_rate(e->interface, l->quality.rate_bps, l->quality.queue_bytes);
	case PL_LAB_MTU:
		return set_mtu(b, s);
	case PL_LAB_FILE:
		return pl_file_replace(s->file, s->text, strlen(s->text), 0600);
	case PL_LAB_RUN: /* started by the keeper */
		return 0;
	}
	return 0;
}

static void say_failed(
	const struct pl_lab_build *b, const struct pl_lab_step *s, int error, struct pl_diag *diag)
{
	struct pl_buf text = { 0 };

	pl_lab_step_text(b->plan, s, &text);
	pl_diag_set(diag, "%s: %s", text.failed ? "a step" : text.data, strerrordesc_np(-error));
	pl_buf_done(&text);
}

int pl_lab_build_run(struct pl_lab_build *b, struct pl_diag *diag)
{
	int home = open(OWN_NETNS, O_RDONLY | O_CLOEXEC), r = home < 0 ? -errno : 0;

	for (unsigned int i = 0; i < PL_LAB_NETNSES; i++)
		b->ns[i] = -1;
	for (size_t i = 0; i < b->plan->n && r == 0; i++) {
		if (b->stop(b->arg)) {
			r = -ECANCELED;
			break;
		}
		r = do_step(b, &b->plan->steps[i]);
		if (r < 0)
			say_failed(b, &b->plan->steps[i], r, diag);
	}
	if (home >= 0) {
		if (setns(home, CLONE_NEWNET) < 0 && r == 0)
			r = -errno;
		close(home);
	}
	return r;
}

static const struct pl_lab_step *next_route(const struct pl_lab_plan *p, size_t *at)
{
	while (*at < p->n && p->steps[*at].kind != PL_LAB_ROUTE)
		++*at;
	return *at < p->n ? &p->steps[(*at)++] : NULL;
}

/* Sets the routes whose ports differ from `was`. Both plans have the same destinations in the same
 * order. */
static int set_routes(struct pl_lab_build *b, const struct pl_lab_plan *was, struct pl_buf *out,
	struct pl_diag *diag)
{
	const struct pl_lab_plan *p = b->plan;
	const struct pl_lab_step *is, *s;
	bool told[PL_LAB_NODES_MAX] = { false };
	size_t i = 0, k = 0;
	int r = 0;

	while (r == 0 && (s = next_route(p, &i)) != NULL && (is = next_route(was, &k)) != NULL) {
		if (s->n_ports == is->n_ports &&
			memcmp(p->ports + s->first_port, was->ports + is->first_port,
				s->n_ports * sizeof(*p->ports)) == 0)
			continue;
		if (!told[s->node])
			pl_lab_change_tell(out, "routes", "set", p->t->nodes[s->node].name);
		told[s->node] = true;
		r = do_step(b, s);
		if (r < 0)
			say_failed(b, s, r, diag);
	}
	return r;
}

/* Sets the rate at ends that are not a switch's: a switch has its rates in its own file. */
static int set_bare_rate(
	struct pl_lab_build *b, unsigned int link, struct pl_buf *out, struct pl_diag *diag)
{
	const struct pl_lab_topology *t = b->plan->t;
	char name[PL_LAB_LINK_TEXT_MAX];
	int r = 0;

	pl_lab_link_text(t, &t->links[link], name);
	pl_lab_change_tell(out, "link", "set", name);
	for (unsigned int side = 0; side < 2 && r == 0; side++) {
		const struct pl_lab_step s = { .kind = PL_LAB_RATE,
			.node = t->links[link].end[side].node,
			.link = link,
			.side = side };

		if (t->nodes[s.node].kind == PL_LAB_SWITCH)
			continue;
		r = do_step(b, &s);
		if (r < 0)
			say_failed(b, &s, r, diag);
	}
	return r;
}

int pl_lab_build_again(struct pl_lab_build *b, const struct pl_lab_plan *was, struct pl_buf *out,
	struct pl_diag *diag)
{
	const struct pl_lab_topology *t = b->plan->t;
	int home = open(OWN_NETNS, O_RDONLY | O_CLOEXEC);
	int r = home < 0 ? -errno : set_routes(b, was, out, diag);

	for (unsigned int i = 0; i < t->n_links && r == 0; i++) {
		if (t->links[i].quality.bare &&
			!pl_lab_change_same_quality(
				&was->t->links[i].quality, &t->links[i].quality))
			r = set_bare_rate(b, i, out, diag);
	}
	if (home >= 0) {
		if (setns(home, CLONE_NEWNET) < 0 && r == 0)
			r = -errno;
		close(home);
	}
	return r;
}

void pl_lab_build_close(struct pl_lab_build *b)
{
	for (unsigned int i = 0; i < PL_LAB_NETNSES; i++) {
		if (b->ns[i] >= 0)
			close(b->ns[i]);
		b->ns[i] = -1;
	}
}
