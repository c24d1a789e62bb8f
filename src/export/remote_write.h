/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Prometheus remote write 1.0: protobuf in a snappy block, over the shared sender
 * (export/sender.h).
 *
 * Receivers check little, and some defects harm them for good, so every point is checked before it
 * is queued. Refused, and counted as such, never changed: a time more than an hour in the past or a
 * minute in the future (one sample in nanoseconds stops a Prometheus server from storing anything,
 * also after a restart); a time not later than the last of the same series (the clock was set
 * back); an invalid label or metric name; a repeated label. A label without a value is left out,
 * which means the same; invalid UTF-8 becomes U+FFFD, as on the page.
 *
 * A series without a sample in a whole interval has ended, and gets a stale marker with the
 * interval's time. The number of series (or histograms) at a time is bounded; points beyond it are
 * refused.
 *
 * Samples of a series are sent in order, one request at a time: open the sender in_order. A sample
 * carries the time of its reading, so only an outage makes it late; late samples are in requests of
 * their own, as the spool keeps the order. When a server says that such a request is out of its
 * bounds, and all of it has one time, no sample of it is acceptable, and it is not halved.
 */
#pragma once

#include <stdint.h>

#include "export/sender.h"

#define PL_REMOTE_PAST_NS    (UINT64_C(3600) * 1000000000)
#define PL_REMOTE_FUTURE_NS  (UINT64_C(60) * 1000000000)
#define PL_REMOTE_LABELS_MAX 8 /* added to every series */

struct pl_remote_options {
	const char *url;           /* complete: http://HOST:9090/api/v1/write */
	const char *const *labels; /* "name=value", for every series without such a label */
	uint32_t n_labels;
	uint32_t max_series; /* series; 0: 262144, at most 2^24 */
};

/* Checks that a text is "name=value" with a valid name of a label. -EINVAL with diag. */
int pl_remote_label_check(const char *text, struct pl_diag *diag);

/* `sender` without url and headers, which are filled in here. Returns what pl_sender_open does. */
int pl_remote_open(struct pl_export **ret, const struct pl_remote_options *options,
	const struct pl_sender_options *sender, uint64_t now_ns, struct pl_diag *diag);
uint64_t pl_remote_memory(uint32_t max_series);

/* Parts for tests. */
extern const struct pl_format_ops pl_remote_format;
int pl_remote_format_new(void **ret, const struct pl_remote_options *options, struct pl_diag *diag);
