/* SPDX-License-Identifier: BSD-2-Clause */
/* Tells of senders that flood a port. */
#include "netio/floods.h"

#include <inttypes.h>
#include <string.h>

#include "base/log.h"
#include "base/num.h"

#define WHO_MAX (PL_ADDR_TEXT_MAX + 4)

static void tell_one(const struct pl_port_flood *f, const char *uri, const char *subject)
{
	char who[WHO_MAX];

	pl_port_flood_text(who, sizeof(who), f);
	if (f->lane > 0)
		pl_notice(subject,
			"%s: %s sends more than is read; from now on it is received apart, and the "
			"others lose nothing by it",
			uri, who);
	else
		pl_notice(subject,
			"%s: %s is received with the others again; %" PRIu64
			" of its datagrams were dropped",
			uri, who, f->drops);
}

void pl_floods_tell(
	struct pl_floods_told *told, struct pl_port *port, const char *uri, const char *subject)
{
	struct pl_port_flood floods[PL_PORT_FLOODS];
	int error;
	const uint32_t n = pl_port_floods(port, floods, &error);

	for (uint32_t i = 0; i < n; i++) {
		if (floods[i].since_ns != told->since_ns[i])
			tell_one(&floods[i], uri, subject);
		told->since_ns[i] = floods[i].since_ns;
	}
	if (error != told->error)
		pl_warn(subject,
			"%s: no separate socket for the busiest sender: %s; all senders share one buffer",
			uri, strerror(error));
	told->error = error;
}

void pl_floods_json(struct pl_json *json, const struct pl_port_flood *floods, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		char who[WHO_MAX];

		pl_port_flood_text(who, sizeof(who), &floods[i]);
		pl_json_object(json);
		pl_json_text(json, "sender", who);
		pl_json_key(json, "apart");
		pl_json_bool(json, floods[i].lane > 0);
		pl_json_number(json, "lane", floods[i].lane);
		pl_json_number(json, "drops", floods[i].drops);
		pl_json_number(json, "times", floods[i].times);
		pl_json_object_end(json);
	}
}
