/* SPDX-License-Identifier: BSD-2-Clause */
/* Reports conditions. */
#include "runtime/readiness.h"

#include <assert.h>
#include <string.h>

void pl_readiness_add(struct pl_readiness *r, const char *name,
	void (*get)(void *arg, struct pl_conditions *ret), void *arg)
{
	assert(r->n < PL_READINESS_PARTS_MAX);
	r->name[r->n] = name;
	r->get[r->n] = get;
	r->arg[r->n++] = arg;
}

static void get(const struct pl_readiness *r, unsigned int i, struct pl_conditions *ret)
{
	pl_conditions_clear(ret);
	if (r->get[i] != NULL)
		r->get[i](r->arg[i], ret);
}

bool pl_readiness_members(const struct pl_readiness *r, unsigned int first, struct pl_json *json)
{
	bool ready = true;

	for (unsigned int i = first; i < r->n; i++) {
		struct pl_conditions list;
		const char *why;

		get(r, i, &list);
		ready = ready && !list.fault;
		if (json == NULL)
			continue;
		why = pl_conditions_why(&list);
		pl_json_key(json, r->name[i]);
		pl_json_object(json);
		pl_json_key(json, "ready");
		pl_json_bool(json, why == NULL);
		if (why != NULL)
			pl_json_text(json, "why", why);
		if (list.n > 0) {
			pl_json_key(json, "conditions");
			pl_json_array(json);
			pl_conditions_json(&list, r->name[i], json);
			pl_json_array_end(json);
		}
		pl_json_object_end(json);
	}
	return ready;
}

bool pl_readiness_list(const struct pl_readiness *r, struct pl_json *json)
{
	bool ready = true;

	for (unsigned int i = 0; i < r->n; i++) {
		struct pl_conditions list;

		get(r, i, &list);
		ready = ready && !list.fault;
		pl_conditions_json(&list, r->name[i], json);
	}
	return ready;
}

/* One sample for a kind of condition, also when a part has it several times. */
static void samples(struct pl_exposition *page, const char *part, const struct pl_conditions *list)
{
	for (unsigned int i = 0; i < list->n; i++) {
		const char *name = list->items[i].name;
		const struct pl_label labels[] = {
			{ .name = "part", .form = PL_LABEL_TEXT, .text = part },
			{ .name = "condition", .form = PL_LABEL_TEXT, .text = name },
		};
		unsigned int before = 0, n = 0;

		for (unsigned int k = 0; k < list->n; k++) {
			const bool same = strcmp(list->items[k].name, name) == 0;

			before += same && k < i;
			n += same;
		}
		if (before == 0)
			pl_exposition_u64(page, labels, 2, n);
	}
}

void pl_readiness_page(const struct pl_readiness *r, struct pl_exposition *page)
{
	struct pl_conditions list;

	pl_exposition_family(page, "pathline_ready", PL_METRIC_GAUGE, NULL,
		"Whether a part of the process can do what it is there for (/readyz).");
	for (unsigned int i = 0; r != NULL && i < r->n; i++) {
		const struct pl_label l = {
			.name = "part", .form = PL_LABEL_TEXT, .text = r->name[i]
		};

		get(r, i, &list);
		pl_exposition_u64(page, &l, 1, !list.fault);
	}
	pl_exposition_family(page, "pathline_condition", PL_METRIC_GAUGE, NULL,
		"Conditions that a part of the process is in, by kind: faults, for which it is not ready, and warnings (pathline status).");
	for (unsigned int i = 0; r != NULL && i < r->n; i++) {
		get(r, i, &list);
		samples(page, r->name[i], &list);
	}
}
