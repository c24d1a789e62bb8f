/* SPDX-License-Identifier: BSD-2-Clause */
/* Parses the file of a lab's network. */
#include "lab/topology.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/conf_tree.h"
#include "base/file.h"
#include "base/num.h"
#include "lab/clocks.h"
#include "lab/run.h"

const char *const pl_lab_kinds[] = { "host", "switch", "router", NULL };
static const char *const telemetries[] = { "int", "none", NULL };
const char *const pl_lab_int_versions[] = { "0.5", "1.0", "2.1", NULL };
/* Instruction bits that all versions have (INT 0.5 4.3, 1.0 4.6, 2.1 5.5), and that a switch
 * supports. */
static const struct {
	const char *name;
	uint16_t bit;
} int_fields[] = {
	{ "node", 0x8000 },
	{ "ports", 0x4000 },
	{ "latency", 0x2000 },
	{ "queue", 0x1000 },
	{ "ingress-ts", 0x0800 },
	{ "egress-ts", 0x0400 },
	{ "tx-util", 0x0100 },
};
#define INT_FIELDS (sizeof(int_fields) / sizeof(int_fields[0]))

/* The file's quality of a link, or of every link. */
struct quality_conf {
	char *rate;
	uint64_t queue_bytes, delay_ns;
	double loss;
	bool bare;
};

struct node_conf {
	char *name;
	unsigned int kind;
	struct pl_conf_list run;
};

struct link_conf {
	struct pl_conf_list ends;
	uint64_t cost;
	struct quality_conf q;
};

struct file_conf {
	char *name, *shape;
	unsigned int telemetry, int_version;
	struct quality_conf every;
	struct pl_conf_list nodes, links, clocks, run, int_fields, story;
	struct pl_lab_marking_conf marking;
};

static int check_rate(const char *value, struct pl_diag *diag)
{
	double rate;

	if (pl_parse_rate(value, &rate) == 0 && rate >= 8000 && rate <= 1e11)
		return 0;
	pl_diag_set(
		diag, "'%s' is no rate in bits per second from 8k to 100G, such as 100M", value);
	return -EINVAL;
}

/* clang-format off */
#define QUALITY(prefix, at) \
	{ .key = prefix "rate", .type = PL_CONF_STRING, .offset = at + offsetof(struct quality_conf, rate), .check = check_rate, \
	  .help = "Bits per second in each direction, such as 100M; by default as fast as the machine." }, \
	{ .key = prefix "queue", .type = PL_CONF_SIZE, .offset = at + offsetof(struct quality_conf, queue_bytes), .def = "0B", .max = 1u << 30, \
	  .help = "Size of the queue in front of a link with a rate; 0B: 64KiB." }, \
	{ .key = prefix "delay", .type = PL_CONF_DURATION, .offset = at + offsetof(struct quality_conf, delay_ns), .def = "0s", .max = UINT64_C(10000000000), \
	  .help = "Time of a packet on the link." }, \
	{ .key = prefix "loss", .type = PL_CONF_DOUBLE, .offset = at + offsetof(struct quality_conf, loss), .def = "0", .max = 1, \
	  .help = "Share of packets that the link loses, 0 to 1." }, \
	{ .key = prefix "bare", .type = PL_CONF_BOOL, .offset = at + offsetof(struct quality_conf, bare), .def = "false", \
	  .help = "The link is only a veth pair of the kernel: faster, with rate and queue, but without delay, loss, impair and truth." }

static const struct pl_conf_row node_rows[] = {
	{ .key = "name", .type = PL_CONF_STRING, .offset = offsetof(struct node_conf, name), .required = true, .def = "h1", .check = pl_lab_check_name,
	  .help = "Name of the node; 12 characters at most." },
	{ .key = "kind", .type = PL_CONF_CHOICE, .offset = offsetof(struct node_conf, kind), .def = "host", .choices = pl_lab_kinds,
	  .help = "host: an end; switch: forwards by pathline switch; router: forwards by the kernel." },
	{ .key = "run", .type = PL_CONF_STRINGS, .offset = offsetof(struct node_conf, run), .max = 16, .one = true,
	  .help = "Commands of the shell that run in the node as long as the lab is up." },
	{ 0 },
};

static const struct pl_conf_row link_rows[] = {
	{ .key = "ends", .type = PL_CONF_STRINGS, .offset = offsetof(struct link_conf, ends), .required = true, .def = "[h1, h2]", .min = 2, .max = 2,
	  .help = "Names of the two nodes." },
	{ .key = "cost", .type = PL_CONF_U64, .offset = offsetof(struct link_conf, cost), .def = "1", .min = 1, .max = PL_LAB_COST_MAX,
	  .help = "Cost of a path by this link; packets take the paths of the lowest sum, all equal ones." },
	QUALITY("", offsetof(struct link_conf, q)),
	{ 0 },
};

const struct pl_conf_row pl_lab_rows[] = {
	{ .key = "name", .type = PL_CONF_STRING, .offset = offsetof(struct file_conf, name), .check = pl_lab_check_lab_name,
	  .help = "Name of the lab, which its network namespaces begin with; by default that of the file." },
	{ .key = "shape", .type = PL_CONF_STRING, .offset = offsetof(struct file_conf, shape),
	  .help = "Ready-made network: line:N, diamond, leaf-spine:LxSxH or wan-ring:N; nodes and links of the file come on top." },
	{ .key = "telemetry", .type = PL_CONF_CHOICE, .offset = offsetof(struct file_conf, telemetry), .def = "int", .choices = telemetries,
	  .help = "int: switches instrument what hosts send by INT, and report to a node that the lab adds, collector; none: they only forward." },
	{ .key = "int.version", .type = PL_CONF_CHOICE, .offset = offsetof(struct file_conf, int_version), .def = "2.1", .choices = pl_lab_int_versions,
	  .help = "Version of INT that sources put into packets: 0.5, 1.0 or 2.1." },
	{ .key = "int.fields", .type = PL_CONF_STRINGS, .offset = offsetof(struct file_conf, int_fields), .def = "[node, ports, latency, queue, ingress-ts, egress-ts, tx-util]", .min = 1, .max = 7,
	  .help = "Values that every switch writes into a packet: node, ports, latency, queue, ingress-ts, egress-ts, tx-util." },
	PL_LAB_MARKING_ROWS(offsetof(struct file_conf, marking)),
	QUALITY("every_link.", offsetof(struct file_conf, every)),
	{ .key = "nodes", .type = PL_CONF_LIST, .offset = offsetof(struct file_conf, nodes), .rows = node_rows, .item_size = sizeof(struct node_conf), .max = PL_LAB_NODES_MAX,
	  .help = "Hosts, switches, routers." },
	{ .key = "links", .type = PL_CONF_LIST, .offset = offsetof(struct file_conf, links), .rows = link_rows, .item_size = sizeof(struct link_conf), .max = PL_LAB_LINKS_MAX,
	  .help = "Links between nodes; a link's own values, such as delay: 0s or bare: false, go before those of every_link." },
	{ .key = "clocks", .type = PL_CONF_LIST, .offset = offsetof(struct file_conf, clocks), .rows = pl_lab_clock_rows, .item_size = sizeof(struct pl_lab_clock_conf), .max = PL_LAB_NODES_MAX,
	  .help = "Switches (also those of a shape) with wrong clocks." },
	{ .key = "run", .type = PL_CONF_LIST, .offset = offsetof(struct file_conf, run), .rows = pl_lab_run_rows, .item_size = sizeof(struct pl_lab_run_conf), .max = PL_LAB_RUN_MAX,
	  .help = "Commands that run in nodes (also those of a shape) while the lab is up; they start in this order." },
	{ .key = "story", .type = PL_CONF_LIST, .offset = offsetof(struct file_conf, story), .rows = pl_lab_story_rows, .item_size = sizeof(struct pl_lab_story_conf), .max = PL_LAB_STORY_MAX,
	  .help = "Steps at given times: links impaired and restored, traffic started and stopped." },
	{ 0 },
};
/* clang-format on */

/* ---- where things stand in the text ---- */

static const struct pl_conf_node *child(const struct pl_conf_node *in, const char *key)
{
	const struct pl_conf_node *c = in != NULL && in->kind == PL_CONF_MAP ? in->child : NULL;

	while (c != NULL && strcmp(c->key->text, key) != 0)
		c = c->next;
	return c;
}

static const struct pl_conf_node *item(const struct pl_conf_node *in, size_t i)
{
	const struct pl_conf_node *c = in != NULL && in->kind == PL_CONF_SEQ ? in->child : NULL;

	while (c != NULL && i-- > 0)
		c = c->next;
	return c;
}

struct reader {
	struct pl_lab_topology *t;
	struct file_conf conf;
	struct pl_conf_tree tree;
	struct pl_diag *diag;
	unsigned int own_nodes, own_links; /* of the shape; those of the file follow */
};

static void place_at(struct reader *r, const struct pl_conf_node *n)
{
	if (r->diag == NULL || n == NULL)
		return;
	r->diag->line = n->line;
	r->diag->column = n->column;
}

/* Puts the position of key's value in a list's i-th item into diag. Returns -EINVAL. */
static int place(struct reader *r, const char *list, size_t i, const char *key, size_t k)
{
	const struct pl_conf_node *root = r->tree.n > 0 ? &r->tree.nodes[0] : NULL;
	const struct pl_conf_node *n = child(item(child(root, list), i), key);
	const struct pl_conf_node *within = item(n, k);

	place_at(r, within != NULL ? within : n);
	return -EINVAL;
}

/* ---- values ---- */

static void make_quality(const struct quality_conf *c, struct pl_lab_quality *ret)
{
	double bps = 0;

	if (c->rate != NULL)
		(void)pl_parse_rate(c->rate, &bps); /* checked before */
	*ret = (struct pl_lab_quality){ .rate_bps = (uint64_t)bps,
		.queue_bytes = c->queue_bytes != 0 ? c->queue_bytes : 65536,
		.delay_ns = c->delay_ns,
		.loss = c->loss,
		.bare = c->bare };
}

/* Makes the quality of the i-th link: of values that it does not have itself, every link's. One
 * that it has may be 0 or false as well. */
static void make_link_quality(const struct reader *r, size_t i, struct pl_lab_quality *ret)
{
	const struct pl_conf_node *n = item(child(&r->tree.nodes[0], "links"), i);
	const struct quality_conf *own = &((const struct link_conf *)r->conf.links.items)[i].q;
	struct quality_conf q = r->conf.every;

	if (child(n, "rate") != NULL)
		q.rate = own->rate;
	if (child(n, "queue") != NULL)
		q.queue_bytes = own->queue_bytes;
	if (child(n, "delay") != NULL)
		q.delay_ns = own->delay_ns;
	if (child(n, "loss") != NULL)
		q.loss = own->loss;
	if (child(n, "bare") != NULL)
		q.bare = own->bare;
	make_quality(&q, ret);
}

/* Gets the position of a list's i-th item; 0: none. */
static void note_place(const struct reader *r, const char *list, size_t i, unsigned int *ret_line,
	unsigned int *ret_column)
{
	const struct pl_conf_node *n = item(child(&r->tree.nodes[0], list), i);

	*ret_line = n != NULL ? n->line : 0;
	*ret_column = n != NULL ? n->column : 0;
}

static int no_memory(struct reader *r)
{
	pl_diag_set(r->diag, "out of memory");
	return -ENOMEM;
}

static int set_clocks(struct reader *r)
{
	const char *key = NULL;
	size_t at = 0;
	int error = pl_lab_clocks_make(r->t, &r->conf.clocks, &at, &key, r->diag);

	return error < 0 ? place(r, "clocks", at, key, 0) : 0;
}

static int add_nodes(struct reader *r)
{
	const struct node_conf *nodes = r->conf.nodes.items;

	for (size_t i = 0; i < r->conf.nodes.n; i++) {
		int at = pl_lab_find_node(r->t, nodes[i].name, NULL);

		if (at >= 0) {
			pl_diag_set(r->diag, "'%s' is the name of another node already%s",
				nodes[i].name,
				(unsigned int)at < r->own_nodes ? ", of the shape" : "");
			return place(r, "nodes", i, "name", 0);
		}
		at = pl_lab_add_node(r->t, nodes[i].name, nodes[i].kind);
		if (at == -E2BIG) {
			pl_diag_set(r->diag, "more than %d nodes", PL_LAB_NODES_MAX);
			return place(r, "nodes", i, "name", 0);
		}
		if (at < 0)
			return no_memory(r);
		note_place(r, "nodes", i, &r->t->nodes[at].line, &r->t->nodes[at].column);
	}
	return set_clocks(r);
}

static int add_links(struct reader *r)
{
	const struct link_conf *links = r->conf.links.items;

	for (size_t i = 0; i < r->conf.links.n; i++) {
		char *const *ends = links[i].ends.items;
		struct pl_lab_quality q;
		int node[2], at;

		for (unsigned int side = 0; side < 2; side++) {
			node[side] = pl_lab_find_node(r->t, ends[side], r->diag);
			if (node[side] < 0)
				return place(r, "links", i, "ends", side);
		}
		if (node[0] == node[1]) {
			pl_diag_set(r->diag, "a link from '%s' to itself", ends[0]);
			return place(r, "links", i, "ends", 1);
		}
		make_link_quality(r, i, &q);
		at = pl_lab_add_link(r->t, (unsigned int)node[0], (unsigned int)node[1], &q);
		if (at == -E2BIG) {
			pl_diag_set(r->diag, "more than %d links", PL_LAB_LINKS_MAX);
			return place(r, "links", i, "ends", 0);
		}
		if (at < 0)
			return no_memory(r);
		r->t->links[at].cost = (uint32_t)links[i].cost;
		note_place(r, "links", i, &r->t->links[at].line, &r->t->links[at].column);
	}
	return 0;
}

static int add_commands(struct reader *r)
{
	const struct node_conf *nodes = r->conf.nodes.items;
	const char *key = NULL;
	size_t at = 0;
	int error = 0;

	for (size_t i = 0; i < r->conf.nodes.n && error == 0; i++)
		error = pl_lab_run_add(r->t, r->own_nodes + (unsigned int)i, &nodes[i].run);
	if (error == 0)
		error = pl_lab_run_make(r->t, &r->conf.run, &at, &key, r->diag);
	return error == -ENOMEM ? no_memory(r) : error < 0 ? place(r, "run", at, key, 0) : 0;
}

/* Names the lab: the given name, or leaf-spine for "a/leaf-spine.yaml". */
static int name_lab(struct pl_lab_topology *t, const char *given, const char *file)
{
	const char *slash = strrchr(file, '/');
	const char *base = slash != NULL ? slash + 1 : file;
	size_t n = strcspn(base, ".:");
	char name[PL_LAB_LAB_NAME_MAX + 1];

	if (given == NULL) {
		if (n == 0 || n > PL_LAB_LAB_NAME_MAX)
			return -EINVAL;
		snprintf(name, sizeof(name), "%.*s", (int)n, base);
		given = name;
	}
	if (pl_lab_check_lab_name(given, NULL) < 0)
		return -EINVAL;
	snprintf(t->name, sizeof(t->name), "%s", given);
	return 0;
}

/* Completes a topology: ports, addresses, and a check of the paths. */
static int finish(struct pl_lab_topology *t, struct reader *r, struct pl_diag *diag)
{
	unsigned int hosts = 0, link = 0;
	int error;

	for (unsigned int i = 0; i < t->n_nodes; i++)
		hosts += t->nodes[i].kind == PL_LAB_HOST;
	if (hosts == 0) {
		pl_diag_set(diag, "the lab has no hosts: add a shape, or nodes");
		return -EINVAL;
	}
	error = pl_lab_number(t, &link, diag);
	if (error < 0 && r != NULL && link >= r->own_links)
		return place(r, "links", link - r->own_links, "ends", 0);
	return error < 0 ? error : pl_lab_check_connected(t, diag);
}

/* Sets the instruction bits of the file's fields. */
static int read_int_fields(struct reader *r)
{
	char *const *given = r->conf.int_fields.items;
	const char *names[INT_FIELDS];

	for (size_t k = 0; k < INT_FIELDS; k++)
		names[k] = int_fields[k].name;
	r->t->int_fields = 0;
	for (size_t i = 0; i < r->conf.int_fields.n; i++) {
		const struct pl_conf_node *root = r->tree.n > 0 ? &r->tree.nodes[0] : NULL;
		size_t k = 0;

		while (k < INT_FIELDS && strcmp(names[k], given[i]) != 0)
			k++;
		if (k < INT_FIELDS) {
			r->t->int_fields |= int_fields[k].bit;
			continue;
		}
		pl_diag_set(r->diag, "no field of INT is called '%s'", given[i]);
		pl_diag_nearest(r->diag, '\'', given[i], names, INT_FIELDS);
		place_at(r, item(child(child(root, "int"), "fields"), i));
		return -EINVAL;
	}
	return 0;
}

static int make_marking(struct reader *r)
{
	const struct pl_conf_node *root = r->tree.n > 0 ? &r->tree.nodes[0] : NULL;
	const char *key = NULL;
	int error = pl_lab_marking_make(
		&r->t->marking, &r->conf.marking, r->conf.telemetry == PL_LAB_INT, &key, r->diag);

	if (error < 0 && key != NULL)
		place_at(r, child(child(root, "marking"), key));
	return error;
}

static int make_story(struct reader *r)
{
	const char *key = "at";
	size_t at = 0;
	int error = pl_lab_story_make(&r->t->story, r->t, &r->conf.story, &at, &key, r->diag);

	return error == -EINVAL ? place(r, "story", at, key, 0) : error;
}

static int build(struct reader *r, const char *name)
{
	struct pl_lab_quality q;
	int error = 0;

	if (name_lab(r->t, r->conf.name, name) < 0) {
		pl_diag_set(r->diag, "no name for the lab can be made of '%s': add \"name\"", name);
		return -EINVAL;
	}
	make_quality(&r->conf.every, &q);
	if (r->conf.shape != NULL) {
		error = pl_lab_shape(r->t, r->conf.shape, &q, r->diag);
		if (error < 0)
			place_at(r, child(&r->tree.nodes[0], "shape"));
	}
	r->t->telemetry = r->conf.telemetry;
	r->t->int_version = r->conf.int_version;
	r->own_nodes = r->t->n_nodes;
	r->own_links = r->t->n_links;
	if (error == 0)
		error = add_nodes(r);
	if (error == 0)
		error = add_links(r);
	if (error == 0)
		error = add_commands(r);
	if (error == 0)
		error = read_int_fields(r);
	if (error == 0)
		error = make_marking(r);
	if (error == 0)
		error = finish(r->t, r, r->diag);
	return error == 0 ? make_story(r) : error;
}

int pl_lab_topology_parse(struct pl_lab_topology *ret, const char *name, const char *text,
	size_t len, struct pl_diag *diag)
{
	struct reader r = { .t = ret, .diag = diag };
	int error;

	*ret = (struct pl_lab_topology){ .n_nodes = 0 };
	error = pl_conf_parse(pl_lab_rows, name, text, len, &r.conf, diag);
	if (error < 0)
		return error;
	error = pl_conf_tree_read(&r.tree, text, len, diag);
	if (error == 0) {
		error = build(&r, name);
		pl_conf_tree_done(&r.tree);
	}
	pl_conf_done(pl_lab_rows, &r.conf);
	return error;
}

static bool is_file(const char *what)
{
	size_t n = strlen(what);

	return strcmp(what, "-") == 0 || strchr(what, '/') != NULL ||
	       (n > 5 && strcmp(what + n - 5, ".yaml") == 0) ||
	       (n > 4 && strcmp(what + n - 4, ".yml") == 0);
}

/* Parses a text, which the topology takes over. */
static int load_text(
	struct pl_lab_topology *ret, const char *name, char *text, struct pl_diag *diag)
{
	int error;

	if (text == NULL)
		return -ENOMEM;
	error = pl_lab_topology_parse(ret, name, text, strlen(text), diag);
	ret->text = text;
	return error;
}

int pl_lab_topology_load(struct pl_lab_topology *ret, const char *what, struct pl_diag *diag)
{
	const struct pl_lab_quality plain = { .queue_bytes = 65536 };
	const char *published = pl_lab_published(what);
	char *text;
	size_t len;
	int error;

	*ret = (struct pl_lab_topology){ .int_version = PL_LAB_INT_V21,
		.int_fields = PL_LAB_INT_FIELDS };
	if (published != NULL)
		return load_text(ret, what, strdup(published), diag);
	if (!is_file(what)) {
		error = pl_lab_shape(ret, what, &plain, diag);
		if (error == 0)
			error = name_lab(ret, NULL, what);
		if (error == 0 && asprintf(&ret->text, "shape: '%s'\n", what) < 0) {
			ret->text = NULL;
			error = -ENOMEM;
		}
		return error == 0 ? finish(ret, NULL, diag) : error;
	}
	error = pl_file_read(what, PL_CONF_TEXT_MAX, &text, &len);
	if (error < 0) {
		pl_diag_set(diag, "%s: cannot read: %s", what, strerrordesc_np(-error));
		return error;
	}
	error = pl_lab_topology_parse(ret, strcmp(what, "-") == 0 ? "lab" : what, text, len, diag);
	ret->text = text;
	return error;
}

int pl_lab_topology_add_collector(struct pl_lab_topology *t, struct pl_diag *diag)
{
	const struct pl_lab_quality bare = { .queue_bytes = 65536, .bare = true };
	unsigned int switches = 0, n = t->n_nodes, link;
	int at;

	for (unsigned int i = 0; i < n; i++)
		switches += t->nodes[i].kind == PL_LAB_SWITCH;
	if (switches == 0 || t->telemetry == PL_LAB_NO_TELEMETRY)
		return 0;
	if (pl_lab_find_node(t, PL_LAB_COLLECTOR, NULL) >= 0) {
		pl_diag_set(diag,
			"the lab adds a node '" PL_LAB_COLLECTOR
			"' for the reports of its switches: give yours another name, or add \"telemetry: none\"");
		return -EINVAL;
	}
	if (switches > PL_LAB_PORTS_MAX) {
		pl_diag_set(diag,
			"%u switches have telemetry, and a collector has %d links: add \"telemetry: none\"",
			switches, PL_LAB_PORTS_MAX);
		return -EINVAL;
	}
	at = pl_lab_add_node(t, PL_LAB_COLLECTOR, PL_LAB_HOST);
	if (at >= 0)
		t->nodes[at].collector = true;
	for (unsigned int i = 0; i < n && at >= 0; i++) {
		int r = t->nodes[i].kind != PL_LAB_SWITCH
				? 0
				: pl_lab_add_link(t, i, (unsigned int)at, &bare);

		if (r < 0)
			at = r;
	}
	if (at < 0) {
		pl_diag_set(diag, "no room for the lab's collector: %s", strerrordesc_np(-at));
		return at == -E2BIG ? -EINVAL : at;
	}
	/* Links added at the end change no port number, name or address of the links before
	 * them. */
	for (unsigned int i = 0; i < t->n_nodes; i++)
		t->nodes[i].n_ports = 0;
	return pl_lab_number(t, &link, diag);
}

void pl_lab_topology_done(struct pl_lab_topology *t)
{
	for (unsigned int i = 0; i < t->n_commands; i++) {
		struct pl_lab_command *c = &t->commands[i];

		free(c->name);
		free(c->text);
		free(c->ready);
		free(c->check);
	}
	free(t->commands);
	pl_lab_story_done(&t->story);
	free(t->nodes);
	free(t->links);
	free(t->text);
	*t = (struct pl_lab_topology){ .n_nodes = 0 };
}
