/* SPDX-License-Identifier: BSD-2-Clause */
/* Common part of outputs of a tap that are exporters: counters, messages, keys of URIs, the end. */
#include "tapout/tap_export.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "export/curl.h"
#include "runtime/say.h"

#define BATCH_MAX       1000000
#define BATCH_BYTES_MIN (UINT64_C(1) << 20)
#define MEMORY_DEFAULT  (UINT64_C(64) << 20)
#define TURN_NS         UINT64_C(100000000)
#define CLOSE_WAIT_NS   UINT64_C(5000000000) /* at the end, without anything being taken */
#define LOOK_NS         10000000             /* between checks at the end */

static struct pl_tap_export *of(struct pl_tap_out *out)
{
	return (struct pl_tap_export *)out;
}

static void take_stats(struct pl_tap_export *self)
{
	const struct pl_export_stats *s = &self->export->stats;
	struct pl_tap_export_stats *to = &self->stats;

	to->records = pl_counter_read(&s->accepted);
	to->recovered = pl_counter_read(&s->recovered);
	to->delivered = pl_counter_read(&s->delivered);
	to->waiting = atomic_load(&s->queued);
	to->spooled = atomic_load(&s->spooled);
	to->drop_refused = pl_counter_read(&s->dropped[PL_EXPORT_REJECTED]) +
			   pl_counter_read(&s->dropped[PL_EXPORT_FORMAT]) +
			   pl_counter_read(&s->dropped[PL_EXPORT_EMPTY]);
	to->drop_time = pl_counter_read(&s->dropped[PL_EXPORT_TIME]);
	to->drop_memory = pl_counter_read(&s->dropped[PL_EXPORT_MEMORY]);
	to->drop_spool_full = pl_counter_read(&s->dropped[PL_EXPORT_SPOOL_FULL]);
	to->drop_disk = pl_counter_read(&s->dropped[PL_EXPORT_NO_SPACE]) +
			pl_counter_read(&s->dropped[PL_EXPORT_IO]) +
			pl_counter_read(&s->dropped[PL_EXPORT_DAMAGED]);
	to->requests = pl_counter_read(&s->requests);
	to->errors = pl_counter_read(&s->errors);
	to->bytes = pl_counter_read(&s->bytes);
}

/* ---- keys ---- */

int pl_tap_export_target(const struct pl_uri *uri, const char *const ports[2], const char *form,
	char *server, size_t cap, const char **ret_name, struct pl_diag *diag)
{
	const char *host = uri->target + 2;
	const char *slash = strncmp(uri->target, "//", 2) == 0 ? strchr(host, '/') : NULL;
	const char *colon;
	bool tls = false;
	int n = pl_uri_get_bool(uri, "tls", &tls, diag);

	if (n < 0)
		return n;
	if (slash == NULL || slash == host || strchr(slash + 1, '/') != NULL)
		return pl_diag_fail(diag, -EINVAL, "%s", form);
	colon = memrchr(host, ':', (size_t)(slash - host));
	/* Colons inside "[::1]" do not begin a port. */
	if (colon != NULL && memchr(colon, ']', (size_t)(slash - colon)) != NULL)
		colon = NULL;
	n = snprintf(server, cap, "%s://%.*s%s", tls ? "https" : "http", (int)(slash - host), host,
		colon != NULL ? "" : ports[tls]);
	if (n < 0 || (size_t)n >= cap)
		return pl_diag_fail(diag, -EINVAL, "the name of the host is too long");
	*ret_name = slash + 1;
	return pl_curl_url_check(server, diag);
}

int pl_tap_export_keys(const struct pl_uri *uri, const char *who, uint64_t batch,
	struct pl_sender_options *ret, struct pl_diag *diag)
{
	int r;

	ret->user = pl_uri_get(uri, "user");
	ret->password_file = pl_uri_get(uri, "password_file");
	ret->ca_file = pl_uri_get(uri, "ca");
	ret->spool_path = pl_uri_get(uri, "spool");
	if (ret->memory_bytes == 0)
		ret->memory_bytes = MEMORY_DEFAULT;
	if (ret->password_file != NULL && ret->user == NULL)
		return pl_diag_fail(diag, -EINVAL, "%s: password_file= needs user=", who);
	if (ret->spool_path == NULL && pl_uri_get(uri, "spool_bytes") != NULL)
		return pl_diag_fail(diag, -EINVAL, "%s: spool_bytes= needs spool=", who);
	r = pl_uri_get_size(uri, "batch", 1, BATCH_MAX, &batch, diag);
	if (r == 0)
		r = pl_uri_get_size(
			uri, "memory", 1 << 20, UINT64_C(1) << 36, &ret->memory_bytes, diag);
	if (r == 0)
		r = pl_uri_get_size(
			uri, "spool_bytes", 16 << 20, UINT64_C(1) << 44, &ret->spool_bytes, diag);
	ret->batch_entries = (uint32_t)batch;
	return r;
}

void pl_tap_export_room(struct pl_sender_options *o, uint64_t record_bytes)
{
	/* A least size: small batches leave part of it empty, but there are not too many. */
	o->batch_bytes = o->batch_entries * record_bytes;
	if (o->batch_bytes < BATCH_BYTES_MIN)
		o->batch_bytes = BATCH_BYTES_MIN;
	if (o->batch_bytes > o->memory_bytes / 4)
		o->batch_bytes = o->memory_bytes / 4;
}

int pl_tap_export_files(const struct pl_uri *uri, struct pl_confine *confine)
{
	int r = pl_confine_path(confine, pl_uri_get(uri, "spool"), true);

	if (r == 0)
		r = pl_confine_path(confine, pl_uri_get(uri, "password_file"), false);
	return r == 0 ? pl_confine_path(confine, pl_uri_get(uri, "ca"), false) : r;
}

/* ---- running ---- */

struct pl_tap_export *pl_tap_export_begin(
	struct pl_tap_out *out, const struct pl_tap_out_settings *settings)
{
	struct pl_tap_export *self = of(out);

	self->now_ns = pl_clock_mono_ns();
	self->given = pl_flat(settings->kind)->size;
	return self;
}

void pl_tap_export_put(struct pl_tap_out *out, const void *records, uint32_t n)
{
	struct pl_tap_export *self = of(out);

	pl_export_write_flat(self->export, self->kind, records, n, self->given, self->now_ns);
}

/* Logs each new text once. */
static void tell_words(struct pl_tap_export *self)
{
	struct pl_export_words words = { .trouble = "" };

	if (self->export->ops->words != NULL)
		self->export->ops->words(self->export, &words);
	if (words.refusal[0] != '\0' && strcmp(words.refusal, self->told.refusal) != 0)
		pl_say("%s: refused: %s", self->out.name, words.refusal);
	if (words.trouble[0] != '\0' && strcmp(words.trouble, self->told.trouble) != 0)
		pl_say("%s: %s", self->out.name, words.trouble);
	self->told = words;
}

uint64_t pl_tap_export_turn(struct pl_tap_out *out, uint64_t now_ns)
{
	struct pl_tap_export *self = of(out);

	self->now_ns = now_ns;
	pl_export_flush(self->export, now_ns, false);
	take_stats(self);
	tell_words(self);
	return self->stats.waiting + self->stats.spooled > 0 ? now_ns + TURN_NS : UINT64_MAX;
}

/* Returns the records that the receiver may still take: those on disk only while it works. */
static uint64_t left_of(const struct pl_export_stats *s)
{
	const uint64_t spooled = atomic_load(&s->last_error) == 0 ? atomic_load(&s->spooled) : 0;

	return atomic_load(&s->queued) + spooled;
}

void pl_tap_export_finish(struct pl_tap_out *out)
{
	struct pl_tap_export *self = of(out);
	struct pl_export_stats *stats = &self->export->stats;
	const struct timespec look = pl_clock_timespec(LOOK_NS);
	uint64_t left = UINT64_MAX, end_ns = 0;

	for (;;) {
		const uint64_t now_ns = pl_clock_mono_ns();

		pl_export_flush(self->export, now_ns, true);
		if (left_of(stats) < left) {
			left = left_of(stats);
			end_ns = now_ns + CLOSE_WAIT_NS;
		}
		if (left == 0 || now_ns >= end_ns)
			break;
		nanosleep(&look, NULL);
	}
	pl_export_finish(self->export);
	take_stats(self);
	tell_words(self);
	self->stats.drop_closed = self->stats.waiting;
	self->stats.waiting = 0;
}

uint64_t pl_tap_export_lost(const struct pl_tap_out *out)
{
	const struct pl_tap_export_stats *s = &((const struct pl_tap_export *)out)->stats;

	return s->drop_refused + s->drop_time + s->drop_memory + s->drop_spool_full + s->drop_disk +
	       s->drop_closed;
}

void pl_tap_export_conditions(
	const struct pl_tap_out *out, const char *tap, struct pl_conditions *ret)
{
	const struct pl_tap_export *self = (const struct pl_tap_export *)out;
	const int error = atomic_load(&self->export->stats.last_error);

	if (error != 0)
		pl_condition_add(ret, PL_CONDITION_FAULT, "output_failing", "tap %s: %s: %s", tap,
			self->out.name,
			self->told.trouble[0] != '\0' ? self->told.trouble
						      : strerror(error < 0 ? -error : error));
}

const void *pl_tap_export_counters(const struct pl_tap_out *out)
{
	return &((const struct pl_tap_export *)out)->stats;
}

void pl_tap_export_close(struct pl_tap_out *out)
{
	struct pl_tap_export *self = of(out);

	if (self->export != NULL)
		self->export->ops->close(self->export);
}
