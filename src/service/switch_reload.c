/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the switch's file again while it runs. */
#include <errno.h>
#include <string.h>

#include "runtime/say.h"
#include "service/switch.h"

static const struct pl_dp_conf_port *port_of(const struct pl_dp_program *program, size_t i)
{
	return (const struct pl_dp_conf_port *)program->conf.ports.items + i;
}

static bool same(const char *a, const char *b)
{
	return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

static bool same_outs(const struct pl_dp_conf *a, const struct pl_dp_conf *b)
{
	char *const *was = a->marking.to.items, *const *is = b->marking.to.items;

	for (size_t i = 0; i < a->marking.to.n && i < b->marking.to.n; i++) {
		if (strcmp(was[i], is[i]) != 0)
			return false;
	}
	return a->marking.to.n == b->marking.to.n;
}

/* Refuses changes of parts that are opened only once. Returns -EINVAL with diag. */
static int check_ports(
	const struct pl_switch *s, const struct pl_dp_program *again, struct pl_diag *diag)
{
	if (!same(s->program->conf.control, again->conf.control) ||
		!same(s->program->conf.truth, again->conf.truth)) {
		pl_diag_set(diag, "another control socket, or folder of truth, needs a restart");
		return -EINVAL;
	}
	if (!same(s->program->conf.clock_offset, again->conf.clock_offset) ||
		!same(s->program->conf.clock_drift, again->conf.clock_drift)) {
		pl_diag_set(diag, "another offset or drift of the clock needs a restart");
		return -EINVAL;
	}
	if (!same_outs(&s->program->conf, &again->conf)) {
		pl_diag_set(diag, "other outputs of block records (marking.to) need a restart");
		return -EINVAL;
	}
	for (size_t i = 0; i < s->n_ports && i < again->conf.ports.n; i++) {
		const struct pl_dp_conf_port *is = port_of(s->program, i),
					     *want = port_of(again, i);
		struct pl_dp_port_cfg cfg;

		pl_dp_program_queues(again, i, &cfg);
		if (is->number != want->number || strcmp(is->uri, want->uri) != 0 ||
			cfg.n_classes != pl_dp_port_get(s->ports[i].queues)->n_classes) {
			pl_diag_set(diag,
				"port %u: another number, uri or number of queues needs a restart",
				(unsigned int)is->number);
			return -EINVAL;
		}
	}
	if (again->conf.ports.n == s->n_ports)
		return 0;
	pl_diag_set(diag, "%zu ports in place of %u: ports that come or go need a restart",
		again->conf.ports.n, s->n_ports);
	return -EINVAL;
}

static void change_ports(struct pl_switch *s, const struct pl_dp_program *again)
{
	for (size_t i = 0; i < s->n_ports; i++) {
		const struct pl_dp_conf_port *conf = port_of(again, i);
		struct pl_dp_port_cfg cfg;

		pl_dp_program_queues(again, i, &cfg);
		/* Checked when the pipeline was built, and the number of classes is the same. */
		(void)pl_dp_port_set(s->ports[i].queues, &cfg, NULL);
		s->ports[i].name = conf->name != NULL ? conf->name : s->ports[i].label;
		s->ports[i].uri = conf->uri;
		s->ports[i].mtu = (uint32_t)conf->mtu;
	}
}

void pl_switch_reload(void *sw)
{
	struct pl_switch *s = sw;
	struct pl_diag diag = { .text = "" };
	struct pl_dp_program again = { .text = NULL };
	struct pl_dp_pipeline *pipeline = NULL;
	int r;

	if (s->file == NULL) {
		pl_say("there is no file to read again");
		return;
	}
	r = pl_dp_program_load(&again, s->file, &diag);
	if (r == 0) {
		r = check_ports(s, &again, &diag);
		if (r == 0)
			r = pl_switch_build(s, &again, &pipeline, &diag);
		if (r < 0)
			pl_dp_program_done(&again);
	}
	if (r < 0) {
		if (diag.text[0] == '\0')
			pl_diag_set(&diag, "%s", strerror(-r));
		pl_say_diag(&diag);
		pl_say("the switch stays as it is");
		s->reloads_refused++;
		return;
	}
	pl_dp_pipeline_inherit(pipeline, s->pipeline);
	s->pipeline = pipeline;
	change_ports(s, &again);
	pl_dp_program_done(&s->reloaded);
	s->reloaded = again;
	s->program = &s->reloaded;
	s->reloads++;
	pl_say("%s is in force: %zu tables", s->file, again.conf.tables.n);
}
