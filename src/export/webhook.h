/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sends events as alerts, in the two forms that Alertmanager knows:
 *
 *   alertmanager   as Prometheus sends them to one: POST /api/v2/alerts, an array of alerts
 *   receiver       as an Alertmanager sends them on to a webhook: an object of version "4" with the
 *                  alerts in it
 *
 * An alert's labels are the kind of event (alertname="pathline_queue_depth"), the place (node,
 * port, queue, drop_reason; for single events, exporter and hw_id) and those the operator adds, so
 * there are as many alerts as places; flow, path, value and threshold are annotations. The begin
 * and the end of an event make one alert: its startsAt is the begin's time, its endsAt the end's.
 * While it lasts, it is sent to an Alertmanager again every repeat_ns, with an endsAt three times
 * as far ahead, so that it ends when this process is gone; a receiver gets it once. A single event
 * is an alert that ends resolve_ns later. A request is a group: all alerts that became due within
 * batch_age, at most batch_entries.
 *
 * At most PL_WEBHOOK_ALERTS alerts last at a time; a further one ends resolve_ns after its begin,
 * and is counted as folded. The detector limits the rate of every kind and place.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "export/sender.h"

#define PL_WEBHOOK_ALERTS     4096
#define PL_WEBHOOK_LABELS_MAX 8

enum pl_webhook_form { PL_WEBHOOK_ALERTMANAGER, PL_WEBHOOK_RECEIVER };

struct pl_webhook_options {
	const char *url; /* complete, with the path */
	enum pl_webhook_form form;
	const char *const *labels; /* "name=value", for every alert; see pl_remote_label_check */
	uint32_t n_labels;
	const char *link;    /* for generatorURL and externalURL; NULL: none */
	uint64_t repeat_ns;  /* 0: 1 min */
	uint64_t resolve_ns; /* 0: 5 min */
};

/* `sender` without url and headers, which are filled in here. Returns what pl_sender_open does. */
int pl_webhook_open(struct pl_export **ret, const struct pl_webhook_options *options,
	const struct pl_sender_options *sender, uint64_t now_ns, struct pl_diag *diag);
uint64_t pl_webhook_memory(void);

/* Parts for tests. */
extern const struct pl_format_ops pl_webhook_format;
int pl_webhook_format_new(void **ret, const struct pl_webhook_options *options);
