/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Prometheus remote write 1.0: protobuf in a snappy block, over the shared sender
 * (export/sender.h).
 *
 * Receivers check little and some defects harm them for good, so everything is checked here, before
 * a point is queued. Refused, and counted as such, never changed: a time more than an hour in the
 * past or a minute in the future (one sample in nanoseconds stops a Prometheus server from storing
 * anything, also after a restart); a time that is not later than the last of the same series (the
 * clock was set back); a label or metric name that is none; a repeated label. A label without a
 * value is left out, which means the same; bytes that are not UTF-8 become U+FFFD, as on the page.
 *
 * A series that is not in a whole interval has ended, and gets a stale marker with the interval's
 * time. How many points (series, or histograms) there can be at a time is bounded; those beyond are
 * refused.
 *
 * Samples of a series go in order, one request at a time: open the sender in_order. Every sample
 * carries the time of its reading, so no series is late of itself; what an outage made late is in
 * requests of its own, as the spool keeps the order. When a server says that such a request is out
 * of its bounds, and all of it has one time, nothing of it is acceptable, and it is not halved.
 */
#pragma once

#include <stdint.h>

#include "export/sender.h"

#define PL_REMOTE_PAST_NS    (UINT64_C(3600) * 1000000000)
#define PL_REMOTE_FUTURE_NS  (UINT64_C(60) * 1000000000)
#define PL_REMOTE_LABELS_MAX 8 /* added to every series */

struct pl_remote_options {
	const char *url;           /* whole: http://HOST:9090/api/v1/write */
	const char *const *labels; /* "name=value", to every series that has no such label */
	uint32_t n_labels;
	uint32_t max_series; /* points; 0: 262144, at most 2^24 */
};

/* Whether a text is "name=value" with a name that a label may have. -EINVAL with diag. */
int pl_remote_label_check(const char *text, struct pl_diag *diag);

/* `sender` without url and headers, which are filled in here. As pl_sender_open. */
int pl_remote_open(struct pl_export **ret, const struct pl_remote_options *options,
	const struct pl_sender_options *sender, uint64_t now_ns, struct pl_diag *diag);
uint64_t pl_remote_memory(uint32_t max_series);

/* The parts, for tests. */
extern const struct pl_format_ops pl_remote_format;
int pl_remote_format_new(void **ret, const struct pl_remote_options *options, struct pl_diag *diag);
