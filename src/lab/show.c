/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints a lab's state. */
#include "lab/show.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/num.h"
#include "lab/plan.h"
#include "lab/said.h"

static const char *const tier_words[] = {
	"root: network namespaces",
	"unprivileged: a user namespace",
	"simulated: the network in simulated time, reports by a real socket",
};

static void address(struct pl_json *j, const char *key, const struct pl_addr *a)
{
	char text[PL_ADDR_TEXT_MAX];

	pl_format_addr(text, a);
	pl_json_text(j, key, text);
}

static unsigned int count(const struct pl_lab_topology *t, unsigned int kind)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < t->n_nodes; i++)
		n += t->nodes[i].kind == kind;
	return n;
}

/* Returns the number of commands of a node. */
static unsigned int runs(const struct pl_lab_topology *t, unsigned int node)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < t->n_commands; i++)
		n += t->commands[i].node == node;
	return n;
}

static unsigned int first_host(const struct pl_lab_topology *t)
{
	unsigned int i = 0;

	while (t->nodes[i].kind != PL_LAB_HOST)
		i++;
	return i;
}

static const char *kind_of(const struct pl_lab_node *n)
{
	return n->collector ? PL_LAB_COLLECTOR : pl_lab_kinds[n->kind];
}

static bool has_check(const struct pl_lab_topology *t)
{
	for (unsigned int i = 0; i < t->n_commands; i++) {
		if (t->commands[i].check != NULL)
			return true;
	}
	return false;
}

static void show_next_simulated(
	const struct pl_lab_topology *t, bool collector, const char *folder, struct pl_buf *out)
{
	unsigned int from = first_host(t), to = from;

	for (unsigned int i = 0; i < t->n_nodes; i++)
		to = t->nodes[i].kind == PL_LAB_HOST && !t->nodes[i].collector ? i : to;
	pl_buf_printf(out, "next  pathline lab traffic %s udp %s %s\n", t->name,
		t->nodes[from].name, t->nodes[to].name);
	if (collector) {
		pl_buf_printf(out, "      pathline top --url unix:%s/" PL_LAB_COLLECTOR ".sock\n",
			folder);
		pl_buf_printf(out, "      pathline query paths %s/history\n", folder);
	}
	pl_buf_printf(out, "      pathline query paths %s/truth\n", folder);
	pl_buf_printf(out, "      pathline lab show %s, pathline lab down %s\n", t->name, t->name);
}

void pl_lab_show_up(const struct pl_lab_topology *t, enum pl_lab_tier tier, const char *folder,
	uint64_t took_ns, bool json, struct pl_buf *out)
{
	const struct pl_lab_node *last = &t->nodes[t->n_nodes - 1];
	const struct pl_lab_node *collector = last->collector ? last : NULL;
	char took[32];

	if (json) {
		struct pl_json j;

		pl_json_init(&j, out);
		pl_json_object(&j);
		pl_json_text(&j, "lab", t->name);
		pl_json_text(&j, "tier", pl_lab_tiers[tier]);
		pl_json_number(&j, "nodes", t->n_nodes);
		pl_json_number(&j, "links", t->n_links);
		pl_json_number(&j, "took_ns", took_ns);
		pl_json_object_end(&j);
		pl_buf_chr(out, '\n');
		return;
	}
	pl_format_duration(took, sizeof(took), took_ns);
	pl_buf_printf(out, "lab '%s' is up: %u nodes, %u links, in %s\n", t->name, t->n_nodes,
		t->n_links, took);
	pl_buf_printf(out, "tier  %s\n", tier_words[tier]);
	if (count(t, PL_LAB_SWITCH) > 0)
		pl_buf_printf(out, "      %u switches %s%s\n", count(t, PL_LAB_SWITCH),
			tier == PL_LAB_SIMULATED ? "of pathline simulate" : "run pathline switch",
			collector != NULL ? ", with INT, and report to the node collector" : "");
	if (tier == PL_LAB_SIMULATED) {
		show_next_simulated(t, collector != NULL, folder, out);
		return;
	}
	pl_buf_printf(out, "next  pathline lab exec %s %s -- ip address\n", t->name,
		t->nodes[first_host(t)].name);
	if (collector != NULL) {
		pl_buf_printf(out, "      pathline lab exec %s %s -- pathline top\n", t->name,
			collector->name);
		pl_buf_printf(out, "      pathline tail --follow --from %s/history\n", folder);
		pl_buf_printf(out, "      pathline query paths %s/history\n", folder);
	}
	pl_buf_printf(out, "      pathline lab show %s, pathline lab down %s\n", t->name, t->name);
	if (has_check(t))
		pl_buf_printf(out, "      pathline lab check %s\n", t->name);
}

static void show_nodes(const struct pl_lab_topology *t, struct pl_buf *out)
{
	char v4[PL_ADDR_TEXT_MAX], v6[PL_ADDR_TEXT_MAX];

	pl_buf_printf(out, "%-12s %-9s %-15s %-18s %5s %4s\n", "NODE", "KIND", "IPV4", "IPV6",
		"PORTS", "RUNS");
	for (unsigned int i = 0; i < t->n_nodes; i++) {
		const struct pl_lab_node *n = &t->nodes[i];

		pl_format_addr(v4, &n->v4);
		pl_format_addr(v6, &n->v6);
		/* Nothing answers at a switch's loopback addresses. */
		if (n->kind == PL_LAB_SWITCH)
			v4[0] = v6[0] = '-', v4[1] = v6[1] = '\0';
		pl_buf_printf(out, "%-12s %-9s %-15s %-18s %5u %4u\n", n->name, kind_of(n), v4, v6,
			n->n_ports, runs(t, i));
	}
}

static void show_links(const struct pl_lab_topology *t, struct pl_buf *out)
{
	char name[PL_LAB_LINK_TEXT_MAX], a[PL_ADDR_TEXT_MAX], b[PL_ADDR_TEXT_MAX], rate[32];

	pl_buf_printf(out, "\n%-26s %5s %5s %-15s %-15s %10s %10s\n", "LINK", "PORT", "PORT",
		"IPV4", "IPV4", "RATE", "QUEUE");
	for (unsigned int i = 0; i < t->n_links; i++) {
		const struct pl_lab_link *l = &t->links[i];
		char queue[PL_EXACT_TEXT_MAX] = "-";

		pl_lab_link_text(t, l, name);
		pl_format_addr(a, &l->end[0].v4);
		pl_format_addr(b, &l->end[1].v4);
		snprintf(rate, sizeof(rate), "-");
		if (l->quality.rate_bps != 0) {
			pl_format_count(rate, sizeof(rate), (double)l->quality.rate_bps);
			pl_format_size_exact(queue, l->quality.queue_bytes);
		}
		pl_buf_printf(out, "%-26s %5u %5u %-15s %-15s %10s %10s\n", name, l->end[0].port,
			l->end[1].port, a, b, rate, queue);
	}
}

static void json_nodes(struct pl_json *j, const struct pl_lab_topology *t)
{
	char netns[PL_LAB_NETNS_MAX];

	pl_json_key(j, "nodes");
	pl_json_array(j);
	for (unsigned int i = 0; i < t->n_nodes; i++) {
		const struct pl_lab_node *n = &t->nodes[i];

		pl_lab_netns_name(t, i, netns);
		pl_json_object(j);
		pl_json_text(j, "name", n->name);
		pl_json_text(j, "kind", kind_of(n));
		pl_json_text(j, "netns", netns);
		if (n->kind != PL_LAB_SWITCH) {
			address(j, "ipv4", &n->v4);
			address(j, "ipv6", &n->v6);
		}
		pl_json_key(j, "run");
		pl_json_array(j);
		for (unsigned int k = 0; k < t->n_commands; k++) {
			if (t->commands[k].node == i)
				pl_json_str(j, t->commands[k].text);
		}
		pl_json_array_end(j);
		pl_json_object_end(j);
	}
	pl_json_array_end(j);
}

static void json_links(struct pl_json *j, const struct pl_lab_topology *t)
{
	char name[PL_LAB_LINK_TEXT_MAX];

	pl_json_key(j, "links");
	pl_json_array(j);
	for (unsigned int i = 0; i < t->n_links; i++) {
		const struct pl_lab_link *l = &t->links[i];

		pl_lab_link_text(t, l, name);
		pl_json_object(j);
		pl_json_text(j, "name", name);
		if (l->quality.rate_bps != 0) {
			pl_json_number(j, "rate_bps", l->quality.rate_bps);
			pl_json_number(j, "queue_bytes", l->quality.queue_bytes);
		}
		pl_json_key(j, "ends");
		pl_json_array(j);
		for (unsigned int side = 0; side < 2; side++) {
			const struct pl_lab_end *e = &l->end[side];

			pl_json_object(j);
			pl_json_text(j, "node", t->nodes[e->node].name);
			pl_json_text(j, "interface", e->interface);
			pl_json_number(j, "port", e->port);
			address(j, "ipv4", &e->v4);
			address(j, "ipv6", &e->v6);
			pl_json_object_end(j);
		}
		pl_json_array_end(j);
		pl_json_object_end(j);
	}
	pl_json_array_end(j);
}

/* Returns a file of the keeper's, on ended commands or the story, to be freed; NULL: none. */
static char *lines_of(const struct pl_lab_found *f, const char *file)
{
	char path[PL_LAB_FOLDER_MAX + 8], *text = NULL;
	size_t len;

	snprintf(path, sizeof(path), "%s/%s", f->folder, file);
	return pl_file_read(path, 1 << 20, &text, &len) < 0 ? NULL : text;
}

static void show_lines(
	const struct pl_lab_found *f, const char *file, const char *title, struct pl_buf *out)
{
	char *text = lines_of(f, file);

	if (text != NULL)
		pl_buf_printf(out, "\n%s\n%s", title, text);
	free(text);
}

static void json_lines(struct pl_json *j, const struct pl_lab_found *f, const char *file)
{
	char *text = lines_of(f, file), *at = text, *line;

	pl_json_key(j, file);
	pl_json_array(j);
	while ((line = strsep(&at, "\n")) != NULL) {
		if (line[0] != '\0')
			pl_json_str(j, line);
	}
	pl_json_array_end(j);
	free(text);
}

/* Prints the named commands' states and accounts, or why they are unknown. */
static void show_commands(const struct pl_lab_found *f, struct pl_json *j, struct pl_buf *out)
{
	struct pl_lab_sayings *s = calloc(1, sizeof(*s));
	struct pl_diag diag = { .text = "out of memory" };

	if (s == NULL || pl_lab_sayings_ask(f, s, &diag) < 0) {
		if (j != NULL) {
			pl_json_text(j, "commands", diag.text);
		} else {
			pl_buf_printf(out, "\nCOMMANDS  %s\n", diag.text);
		}
	} else if (j != NULL) {
		pl_lab_sayings_json(f, s, j);
	} else {
		pl_lab_sayings_text(f, s, out);
	}
	if (s != NULL)
		pl_lab_sayings_done(s);
	free(s);
}

void pl_lab_show(const struct pl_lab_found *f, bool json, struct pl_buf *out)
{
	char title[PL_LAB_FOLDER_MAX + 32];
	struct pl_json j;

	if (!json) {
		pl_buf_printf(out, "lab '%s'  tier %s  process %d  folder %s\n\n", f->name,
			tier_words[f->tier], (int)f->keeper, f->folder);
		show_nodes(&f->topology, out);
		show_links(&f->topology, out);
		if (pl_lab_has_sayings(f))
			show_commands(f, NULL, out);
		snprintf(title, sizeof(title), "ENDED (output in %s)", f->folder);
		show_lines(f, "ended", title, out);
		show_lines(f, "story", "STORY (done so far)", out);
		return;
	}
	pl_json_init(&j, out);
	pl_json_object(&j);
	pl_json_text(&j, "lab", f->name);
	pl_json_text(&j, "tier", pl_lab_tiers[f->tier]);
	pl_json_text(&j, "folder", f->folder);
	pl_json_number(&j, "pid", (uint64_t)f->keeper);
	json_nodes(&j, &f->topology);
	json_links(&j, &f->topology);
	if (pl_lab_has_sayings(f))
		show_commands(f, &j, out);
	json_lines(&j, f, "ended");
	json_lines(&j, f, "story");
	pl_json_object_end(&j);
	pl_buf_chr(out, '\n');
}

/* ---- changed ---- */

static void json_changes(const struct pl_lab_found *f, char *at, struct pl_buf *out)
{
	struct pl_json j;
	char *line;

	pl_json_init(&j, out);
	pl_json_object(&j);
	pl_json_text(&j, "lab", f->name);
	pl_json_key(&j, "changes");
	pl_json_array(&j);
	while ((line = strsep(&at, "\n")) != NULL && line[0] != '\0') {
		const char *kind = strsep(&line, "\t"), *did = strsep(&line, "\t");

		pl_json_object(&j);
		pl_json_text(&j, "kind", kind);
		pl_json_text(&j, "did", did != NULL ? did : "");
		pl_json_text(&j, "name", line != NULL ? line : "");
		pl_json_object_end(&j);
	}
	pl_json_array_end(&j);
	pl_json_object_end(&j);
	pl_buf_chr(out, '\n');
}

void pl_lab_show_applied(
	const struct pl_lab_found *f, struct pl_buf *lines, bool json, struct pl_buf *out)
{
	char *at, *line;

	at = lines->len > 0 ? lines->data : NULL;
	if (json) {
		json_changes(f, at, out);
		return;
	}
	pl_buf_printf(out,
		at != NULL ? "lab '%s' is as the file says now\n"
			   : "lab '%s' is as the file says already: nothing was changed\n",
		f->name);
	while ((line = strsep(&at, "\n")) != NULL && line[0] != '\0') {
		const char *kind = strsep(&line, "\t"), *did = strsep(&line, "\t");

		pl_buf_printf(out,
			line != NULL && line[0] != '\0' ? "%-8s %-10s %s\n" : "%-8s %s%s\n", kind,
			did != NULL ? did : "", line != NULL ? line : "");
	}
}
