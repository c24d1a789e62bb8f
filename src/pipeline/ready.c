/* SPDX-License-Identifier: BSD-2-Clause */
/* Tells whether a pipeline is ready, and what is wrong with it. */
#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "pipeline/region_alerts.h"
#include "pipeline/region_source.h"
#include "pipeline/state.h"

#define UNTRACKED_SHOWN_NS (UINT64_C(60) * 1000000000u)
#define OVERFLOW_SHOWN_NS  (UINT64_C(10) * 1000000000u)
#define REFUSED_SHOWN_NS   (UINT64_C(60) * 1000000000u)
#define SLOW_FAULT_NS      (UINT64_C(10) * 1000000000u)
#define ADVICES_SHOWN      4

/* Returns why an output does not work as promised, or NULL. The text may be in `words`. */
static const char *output_trouble(struct pl_pipeline *p, unsigned int i,
	struct pl_output_stats *ret, struct pl_export_words *words)
{
	uint64_t now = pl_clock_mono_ns();

	pl_output_stats(p->outputs[i], ret);
	if (ret->full != p->output_full[i]) {
		p->output_full[i] = ret->full;
		p->output_full_ns[i] = now;
	}
	pl_output_words(p->outputs[i], words);
	if (ret->last_error != 0 && words->trouble[0] != '\0')
		return words->trouble;
	if (ret->last_error != 0)
		return strerror(ret->last_error < 0 ? -ret->last_error : ret->last_error);
	if (p->output_full_ns[i] != 0 && now - p->output_full_ns[i] < OVERFLOW_SHOWN_NS)
		return "its queue is full";
	return NULL;
}

/* Lists, for each worker, whether all exporters are tracked: losses of others are unknown. */
static void write_untracked(struct pl_pipeline *p, struct pl_json *json)
{
	const uint64_t now = pl_clock_mono_ns();
	static const char why[] =
		"some exporters are not tracked, so the losses of their reports are unknown: all decode.max_exporters are in use (pathline top, /api/v1/exporters)";

	pl_json_key(json, "exporters");
	pl_json_array(json);
	for (unsigned int i = 0; i < p->n_workers; i++) {
		struct pl_worker *w = p->workers[i];
		bool good = !pl_worker_untracked(w, now, UNTRACKED_SHOWN_NS);

		pl_json_object(json);
		pl_json_text(json, "name", w->name);
		pl_json_number(json, "socket", w->index);
		pl_json_key(json, "ok");
		pl_json_bool(json, good);
		if (!good) {
			pl_json_text(json, "trouble", why);
			pl_condition_add(&p->said_conditions, PL_CONDITION_FAULT,
				"exporters_untracked", "exporters at %s: %s", w->name, why);
		}
		pl_json_object_end(json);
	}
	pl_json_array_end(json);
}

/* Adds workers that did not answer in time. */
static void add_slow(struct pl_pipeline *p, struct pl_conditions *list)
{
	pl_pipeline_look(p);
	for (unsigned int i = 0; p->behind && i < p->n_workers; i++) {
		const uint64_t age = pl_pipeline_age_ns(p);

		if (!pl_worker_answered(p->workers[i]))
			pl_condition_add(list,
				age < SLOW_FAULT_NS ? PL_CONDITION_WARNING : PL_CONDITION_FAULT,
				"worker_slow",
				"the worker of %s does not answer: the state of all workers is %.1f s old",
				p->workers[i]->name, (double)age * 1e-9);
	}
}

/* Several workers may have the same advice. */
static bool is_listed(const struct pl_conditions *list, const char *text)
{
	for (unsigned int i = 0; i < list->n; i++) {
		if (strcmp(list->items[i].text, text) == 0)
			return true;
	}
	return false;
}

/* Adds profiles that exporters lack: only a few, so that other conditions stay visible. */
static void add_advices(struct pl_pipeline *p, struct pl_conditions *list)
{
	char text[PL_WORKER_ADVICE_TEXT];
	unsigned int n = 0;

	for (unsigned int i = 0; i < p->n_workers; i++) {
		for (unsigned int k = 0;
			n < ADVICES_SHOWN && pl_worker_advice(p->workers[i], k, text, sizeof(text));
			k++) {
			if (is_listed(list, text))
				continue;
			pl_condition_add(list, PL_CONDITION_WARNING, "profile_missing", "%s", text);
			n++;
		}
	}
}

/* Adds regions with more values beyond a bound than there is room for: these have no events. */
static void add_refused_alerts(struct pl_pipeline *p, struct pl_conditions *list)
{
	const uint64_t now = pl_clock_mono_ns();
	struct pl_region_input_stats s;
	uint64_t refused = 0;

	for (unsigned int i = 0; p->regions != NULL && pl_region_source_stats(p->regions, i, &s);
		i++)
		refused += s.alerts_refused;
	if (refused > p->alerts_refused)
		p->alerts_refused_ns = now;
	p->alerts_refused = refused;
	if (p->alerts_refused_ns != 0 && now - p->alerts_refused_ns < REFUSED_SHOWN_NS)
		pl_condition_add(list, PL_CONDITION_WARNING, "alerts_refused",
			"regions: %" PRIu64
			" values were beyond a bound and have no event: %d places of a region have alerts at a time (pathline_region_alerts_refused)",
			refused, PL_REGION_PLACES);
}

/* Writes the readiness, and all conditions. With both locks held. */
static void write_ready(struct pl_pipeline *p, struct pl_buf *out)
{
	struct pl_conditions *list = &p->said_conditions;
	struct pl_json json;

	pl_conditions_clear(list);
	if (p->stopping)
		pl_condition_add(list, PL_CONDITION_FAULT, "stopping", "it is stopping");
	else if (!p->running)
		pl_condition_add(list, PL_CONDITION_FAULT, "not_running", "it is not ready");
	add_slow(p, list);
	pl_json_init(&json, out);
	pl_json_object(&json);
	pl_json_key(&json, "listeners");
	pl_json_array(&json);
	for (unsigned int i = 0; i < p->n_workers; i++) {
		char trouble[256];
		int error = pl_worker_trouble(p->workers[i], trouble, sizeof(trouble));

		if (error != 0)
			pl_condition_add(list, PL_CONDITION_FAULT, "source_down", "source %s: %s",
				p->workers[i]->name, trouble);
		pl_json_object(&json);
		pl_json_text(&json, "name", p->workers[i]->name);
		pl_json_number(&json, "socket", p->workers[i]->index);
		pl_json_key(&json, "ok");
		pl_json_bool(&json, error == 0);
		if (error != 0)
			pl_json_text(&json, "trouble", trouble);
		pl_json_object_end(&json);
	}
	pl_json_array_end(&json);
	write_untracked(p, &json);
	pl_json_key(&json, "outputs");
	pl_json_array(&json);
	for (unsigned int i = 0; i < p->n_outputs; i++) {
		struct pl_export_words words;
		struct pl_output_stats s;
		const char *trouble = output_trouble(p, i, &s, &words);

		/* Added, not configured: its state is not part of the readiness. */
		if (p->output_ids[i] == NULL)
			continue;
		if (trouble != NULL)
			pl_condition_add(list, PL_CONDITION_FAULT, "output_failing",
				"output %s: %s", pl_output_name(p->outputs[i]), trouble);
		pl_json_object(&json);
		pl_json_text(&json, "name", pl_output_name(p->outputs[i]));
		pl_json_key(&json, "ok");
		pl_json_bool(&json, trouble == NULL);
		pl_json_number(&json, "waiting", s.undelivered);
		if (s.spooled > 0)
			pl_json_number(&json, "spooled", s.spooled);
		if (trouble != NULL)
			pl_json_text(&json, "trouble", trouble);
		pl_json_object_end(&json);
	}
	pl_json_array_end(&json);
	if (p->stopping) {
		pl_json_key(&json, "stopping");
		pl_json_bool(&json, true);
	}
	/* A failed reload is only a warning: the collector goes on as before. */
	if (!p->last_reload_ok)
		pl_condition_add(list, PL_CONDITION_WARNING, "reload_failed",
			"the last reload failed: the configuration file is bad, and the old configuration is in use");
	add_advices(p, list);
	add_refused_alerts(p, list);
	if (list->n > 0) {
		pl_json_key(&json, "conditions");
		pl_json_array(&json);
		pl_conditions_json(list, "collector", &json);
		pl_json_array_end(&json);
	}
	pl_json_key(&json, "ready");
	pl_json_bool(&json, !list->fault);
	pl_json_object_end(&json);
}

/* Returns the last result; json may be NULL. */
static bool said(struct pl_pipeline *p, struct pl_buf *json)
{
	bool ready;

	pthread_mutex_lock(&p->said_lock);
	if (json != NULL)
		pl_buf_add(json, p->said.data, p->said.len);
	ready = p->said_ready && !p->said_conditions.fault && !p->said.failed;
	pthread_mutex_unlock(&p->said_lock);
	return ready;
}

/* Makes a new result. p->lock is held, and released here. */
static bool say_ready(struct pl_pipeline *p, struct pl_buf *json)
{
	pthread_mutex_lock(&p->said_lock);
	pl_buf_reset(&p->said);
	p->said_ready = true;
	write_ready(p, &p->said);
	pthread_mutex_unlock(&p->said_lock);
	pthread_mutex_unlock(&p->lock);
	return said(p, json);
}

bool pl_pipeline_ready(struct pl_pipeline *p, struct pl_buf *json)
{
	pthread_mutex_lock(&p->lock);
	return say_ready(p, json);
}

bool pl_pipeline_ready_now(struct pl_pipeline *p, struct pl_buf *json)
{
	return pthread_mutex_trylock(&p->lock) == 0 ? say_ready(p, json) : said(p, json);
}

void pl_pipeline_conditions(void *pipeline, struct pl_conditions *ret)
{
	struct pl_pipeline *p = pipeline;

	(void)pl_pipeline_ready_now(p, NULL);
	pthread_mutex_lock(&p->said_lock);
	*ret = p->said_conditions;
	pthread_mutex_unlock(&p->said_lock);
}
