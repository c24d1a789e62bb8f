/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs the collector of reports. */
#include "service/report_collector.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/num.h"
#include "runtime/kafka_files.h"
#include "runtime/notify.h"
#include "web/webconf.h"

#define STATUS_NS (UINT64_C(10) * 1000000000u)
#define ANSWER_NS UINT64_C(100000000)          /* workers answer sooner */
#define ALIVE_NS  (UINT64_C(10) * 1000000000u) /* a worker that runs answers sooner */

/* ---- opening ---- */

static void interfaces(void *s, struct pl_confine *confine)
{
	const struct pl_report_collector *c = s;
	const struct pl_config_source *sources = c->config.sources.items;

	for (size_t i = 0; i < c->config.sources.n; i++)
		pl_confine_uri(confine, sources[i].uri, false);
}

static int may_read(void *arg, const char *path)
{
	return pl_confine_path(arg, path, false);
}

static int output_paths(struct pl_confine *c, const struct pl_config_output *o)
{
	const char *const written[] = { o->path, o->spool_path, o->dead_letter_path, o->dta.path },
			  *const read[] = { o->password_file, o->token_file, o->tls.ca, o->tls.cert,
				  o->tls.key };
	int r = 0;

	for (size_t i = 0; r == 0 && i < sizeof(written) / sizeof(written[0]); i++)
		r = pl_confine_path(c, written[i], true);
	for (size_t i = 0; r == 0 && i < sizeof(read) / sizeof(read[0]); i++)
		r = pl_confine_path(c, read[i], false);
	if (r == 0 && o->to != NULL && strncmp(o->to, "kafka:", 6) == 0)
		r = pl_kafka_files(o->to, c);
	return r;
}

/* Permits every file and folder named in the configuration, and the file itself, for a reload. */
static int config_paths(struct pl_confine *c, const struct pl_config *config, const char *file)
{
	const struct pl_config_output *outputs = config->outputs.items;
	const struct pl_config_source *sources = config->sources.items;
	int r = pl_confine_path(c, file, false);

	for (size_t i = 0; r == 0 && i < config->sources.n; i++) {
		const char *colon = strchr(sources[i].uri, ':');

		r = pl_confine_path(c,
			strncmp(sources[i].uri, "pcap:", 5) == 0 ? colon + 1
			: colon == NULL                          ? sources[i].uri
								 : NULL,
			false);
		if (r == 0 && strncmp(sources[i].uri, "kafka:", 6) == 0)
			r = pl_kafka_files(sources[i].uri, c);
	}
	for (size_t i = 0; r == 0 && i < config->outputs.n; i++)
		r = output_paths(c, &outputs[i]);
	if (r == 0)
		r = pl_confine_path(c, config->web.socket, true);
	if (r == 0)
		r = pl_confine_path(c, config->web.config_file, false);
	if (r == 0 && config->web.config_file != NULL)
		r = pl_webconf_files(config->web.config_file, may_read, c);
	return r;
}

static int files(void *s, struct pl_confine *confine)
{
	const struct pl_report_collector *c = s;

	return config_paths(confine, pl_pipeline_config(c->daemon.pipeline), c->o->file);
}

static int ready(void *arg, struct pl_pipeline *pipeline, struct pl_diag *diag)
{
	const struct pl_report_collector *c = arg;

	return c->o->ready != NULL ? c->o->ready(c->o->ready_arg, pipeline, diag) : 0;
}

static int acquire(void *s, const struct pl_rights *rights, struct pl_diag *diag)
{
	struct pl_report_collector *c = s;

	return pl_daemon_new(&c->daemon, &c->config, rights, diag);
}

static int open_service(void *s, struct pl_diag *diag)
{
	struct pl_report_collector *c = s;
	struct pl_daemon_hooks hooks = { .ready = ready, .arg = c };
	int r;

	hooks.alone = c->o->alone;
	hooks.marks = c->o->marks;
	hooks.taps = c->o->taps;
	r = pl_daemon_open(&c->daemon, &hooks, diag);
	c->began = r == 0;
	c->status_ns = pl_clock_mono_ns();
	c->look_ns = c->status_ns + STATUS_NS;
	return r;
}

/* ---- running ---- */

/* Reports the state of the workers' last answers; if these are too old, asks the workers and reads
 * the answers again. */
static void say_status(struct pl_report_collector *c, uint64_t now_ns)
{
	struct pl_pipeline_stats s;
	char rate[32], text[160];
	uint64_t since_ns;

	c->look_ns = now_ns + ANSWER_NS;
	if (pl_pipeline_stats_now(c->daemon.pipeline, &s) < 0 ||
		now_ns - s.age_ns < c->status_ns + STATUS_NS)
		return;
	since_ns = now_ns - s.age_ns - c->status_ns;
	c->status_ns += since_ns;
	c->look_ns = c->status_ns + STATUS_NS;
	pl_format_count(rate, sizeof(rate),
		(double)(s.totals.stored - c->reports) * 1e9 / (double)since_ns);
	snprintf(text, sizeof(text),
		"STATUS=%s reports/s, %" PRIu64 " in all, %" PRIu64 " missing, %" PRIu64
		" dropped by the kernel",
		rate, s.totals.stored, s.totals.lost, s.ports.kernel_drops);
	pl_notify(text);
	c->reports = s.totals.stored;
}

static int turn(void *s, const struct pollfd *fds, uint64_t now_ns, struct pl_diag *diag)
{
	struct pl_report_collector *c = s;

	(void)fds;
	(void)diag;
	if (now_ns >= c->look_ns)
		say_status(c, now_ns);
	return PL_TURN_IDLE;
}

static uint64_t due_ns(void *s, uint64_t now_ns)
{
	const struct pl_report_collector *c = s;

	(void)now_ns;
	return c->look_ns;
}

static bool alive(void *s)
{
	struct pl_report_collector *c = s;
	struct pl_pipeline_stats stats;

	return pl_pipeline_stats_now(c->daemon.pipeline, &stats) == 0 && stats.open_ns < ALIVE_NS;
}

/* Changes the other services, then the pipeline. When one refuses, the others return to the
 * configuration in use. */
static int change_all(struct pl_report_collector *c, struct pl_config *config, struct pl_diag *diag)
{
	struct pl_pipeline *p = c->daemon.pipeline;
	int r = c->o->changed != NULL ? c->o->changed(c->o->changed_arg, config, diag) : 0;

	if (r < 0)
		pl_pipeline_reload_failed(p);
	else
		r = pl_pipeline_reload(p, config, diag);
	if (r < 0 && c->o->changed != NULL)
		(void)c->o->changed(c->o->changed_arg, pl_pipeline_config(p), NULL);
	return r;
}

/* Changes all parts or none: if one refuses, none is changed. Takes the configuration over. */
static int change(struct pl_report_collector *c, struct pl_config *config, struct pl_diag *diag)
{
	struct pl_daemon *d = &c->daemon;
	/* The listener stays until a restart. When the new file has another one, or none, its
	 * security is not meant for this one, which keeps what it has. */
	const bool secures = pl_daemon_listens_at(d, config);
	struct pl_webconf *security = NULL;
	int r = secures ? pl_daemon_security(config, &security, diag) : 0;

	if (r < 0)
		pl_pipeline_reload_failed(d->pipeline);
	else
		r = change_all(c, config, diag);
	if (r < 0) {
		pl_config_done(config);
		pl_webconf_free(security);
		return r;
	}
	/* Everything else is in use. */
	if (secures && pl_http_secure(d->http, security, diag) < 0)
		pl_error("reload", "%s", diag->text);
	return 0;
}

static void reload(void *s)
{
	struct pl_report_collector *c = s;
	struct pl_config config;
	struct pl_diag diag = { .text = "" };
	char text[sizeof(diag.text) + sizeof(diag.file) + 32];
	int r;

	pl_pipeline_reopen(c->daemon.pipeline);
	if (c->o->named == NULL) {
		pl_notice("reload", "there is no configuration file; outputs were reopened");
		return;
	}
	r = c->o->load(c->o->arg, &config, pl_pipeline_config(c->daemon.pipeline), &diag);
	if (r == 0)
		r = change(c, &config, &diag);
	else
		pl_pipeline_reload_failed(c->daemon.pipeline);
	if (r == 0) {
		const struct pl_config *now = pl_pipeline_config(c->daemon.pipeline);

		pl_log_set_level((enum pl_log_level)now->log.level);
		pl_log_set_format((enum pl_log_format)now->log.format);
		pl_notice("reload", "%s is in use", c->o->named);
		return;
	}
	if (diag.text[0] == '\0')
		pl_diag_set(&diag, "%s", strerror(-r));
	pl_diag_format(&diag, text, sizeof(text));
	pl_error("reload", "%s; the old configuration stays in use%s", text,
		r == -EPERM || r == -EACCES
			? "; the daemon gave up the privilege for it at the start: restart it"
			: "");
}

/* ---- the end ---- */

static void drain(void *s)
{
	struct pl_report_collector *c = s;

	c->left = pl_daemon_stop(&c->daemon, pl_pipeline_config(c->daemon.pipeline)->drain_ns);
}

static bool is_fresh(void *s, uint64_t since_ns)
{
	struct pl_report_collector *c = s;
	struct pl_pipeline_stats stats;

	return pl_pipeline_stats_now(c->daemon.pipeline, &stats) < 0 ||
	       stats.age_ns <= pl_clock_mono_ns() - since_ns;
}

static void account(void *s, struct pl_buf *text)
{
	struct pl_report_collector *c = s;
	struct pl_pipeline_stats stats;

	if (pl_pipeline_stats_now(c->daemon.pipeline, &stats) < 0)
		pl_error("run", "the collector does not run: there is no account");
	else
		pl_daemon_account(&stats, text);
}

void pl_report_collector_close(struct pl_report_collector *c)
{
	pl_daemon_done(&c->daemon);
	pl_config_done(&c->config);
}

const struct pl_service_ops pl_report_collector_service = {
	.name = "run",
	.interfaces = interfaces,
	.files = files,
	.acquire = acquire,
	.open = open_service,
	.turn = turn,
	.due_ns = due_ns,
	.alive = alive,
	.reload = reload,
	.drain = drain,
	.is_fresh = is_fresh,
	.account = account,
};
