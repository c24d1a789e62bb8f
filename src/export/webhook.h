/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Events as alerts, in the two forms that Alertmanager knows:
 *
 *   alertmanager   what a Prometheus server sends to one: POST /api/v2/alerts, an array of alerts
 *   receiver       what an Alertmanager sends on to a webhook: an object of version "4" with the
 *                  alerts in it
 *
 * An alert's labels are the kind of event (alertname="pathline_queue_depth"), the place (node,
 * port, queue, drop_reason; of what happens once, exporter and hw_id) and those the operator adds,
 * so alerts are as many as places; flow, path, value and threshold are annotations. Events that
 * begin and end are one alert: its startsAt is the begin's time, its endsAt the end's. While it
 * lasts an Alertmanager is told again every repeat_ns, with an endsAt three times as far ahead, so
 * that it ends by itself when we are gone; a receiver is told once. An event that happens once is
 * an alert that ends resolve_ns later. A request is a group: all that became due within batch_age,
 * at most batch_entries.
 *
 * Lasting alerts are at most PL_WEBHOOK_ALERTS; one beyond ends resolve_ns after its begin, and is
 * counted as folded. Their rate is the detector's, which limits every kind and place.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "export/sender.h"

#define PL_WEBHOOK_ALERTS     4096
#define PL_WEBHOOK_LABELS_MAX 8

enum pl_webhook_form { PL_WEBHOOK_ALERTMANAGER, PL_WEBHOOK_RECEIVER };

struct pl_webhook_options {
	const char *url; /* whole */
	enum pl_webhook_form form;
	const char *const *labels; /* "name=value", to every alert; pl_remote_label_check */
	uint32_t n_labels;
	const char *link;    /* generatorURL and externalURL; NULL: none */
	uint64_t repeat_ns;  /* 0: 1 min */
	uint64_t resolve_ns; /* 0: 5 min */
};

/* `sender` without url and headers, which are filled in here. As pl_sender_open. */
int pl_webhook_open(struct pl_export **ret, const struct pl_webhook_options *options,
	const struct pl_sender_options *sender, uint64_t now_ns, struct pl_diag *diag);
uint64_t pl_webhook_memory(void);

/* The parts, for tests. */
extern const struct pl_format_ops pl_webhook_format;
int pl_webhook_format_new(void **ret, const struct pl_webhook_options *options);
