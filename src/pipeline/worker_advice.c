/* SPDX-License-Identifier: BSD-2-Clause */
/* Logs and keeps profiles that would decode packets which the worker cannot read. */
#include "pipeline/worker_parts.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"

static void write_advice(const struct pl_advice *advice, char *dst, size_t cap)
{
	struct pl_buf text;

	pl_buf_init(&text);
	/* The entry comes first: only words are cut for want of room. */
	pl_buf_str(&text, "add ");
	pl_advice_entry(advice, &text);
	pl_buf_str(&text, " to profiles: ");
	pl_advice_reason(advice, &text);
	snprintf(dst, cap, "%s", text.failed ? "out of memory" : text.data);
	pl_buf_done(&text);
}

void pl_worker_show_advices(struct pl_worker *w)
{
	char shown[PL_WORKER_ADVICES][PL_WORKER_ADVICE_TEXT];
	struct pl_advise *advise = w->engine->advise;
	const struct pl_advice *advice;
	unsigned int n = 0, pos = 0;

	while (n < PL_WORKER_ADVICES && (advice = pl_advise_next(advise, &pos)) != NULL)
		write_advice(advice, shown[n++], sizeof(shown[0]));
	pthread_mutex_lock(&w->trouble_lock);
	memcpy(w->advices, shown, n * sizeof(shown[0]));
	w->n_advices = n;
	pthread_mutex_unlock(&w->trouble_lock);
	while ((advice = pl_advise_fresh(advise)) != NULL) {
		write_advice(advice, shown[0], sizeof(shown[0]));
		pl_warn("worker", "%s: %s", w->uri, shown[0]);
	}
}

bool pl_worker_advice(struct pl_worker *w, unsigned int i, char *dst, size_t cap)
{
	bool there;

	pthread_mutex_lock(&w->trouble_lock);
	there = i < w->n_advices;
	if (there)
		snprintf(dst, cap, "%s", w->advices[i]);
	pthread_mutex_unlock(&w->trouble_lock);
	return there;
}
