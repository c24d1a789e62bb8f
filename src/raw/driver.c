/* SPDX-License-Identifier: BSD-2-Clause */
/* Registers topics of packets as a kind of port. */
#include "raw/driver.h"

#include <errno.h>
#include <stdio.h>

#include "kafka/kafka.h"
#include "kafka/uri.h"
#include "raw/port.h"

#if PL_HAVE_KAFKA
/* Puts the scheme before the target, which is all that ports get of a URI. */
static int whole(char text[PL_KAFKA_URI_MAX], const struct pl_uri *uri, struct pl_diag *diag)
{
	if (snprintf(text, PL_KAFKA_URI_MAX, PL_KAFKA_SCHEME "%s", uri->target) < PL_KAFKA_URI_MAX)
		return 0;
	pl_diag_set(diag, "kafka: the URI is too long");
	return -EINVAL;
}

static int check(const struct pl_uri *uri, struct pl_diag *diag)
{
	char text[PL_KAFKA_URI_MAX];

	return whole(text, uri, diag) < 0 ? -EINVAL : pl_raw_port_check(text, diag);
}

static int open_port(struct pl_port **ret, const struct pl_uri *uri, enum pl_port_mode mode,
	const struct pl_port_options *options, struct pl_diag *diag)
{
	char text[PL_KAFKA_URI_MAX];
	int r = whole(text, uri, diag);

	if (r == 0 && mode == PL_PORT_SEND) {
		pl_diag_set(diag, "kafka://%s: packets are received from a topic, not sent to it",
			uri->target);
		r = -EINVAL;
	}
	if (r == 0 && pl_raw_port_check(text, diag) < 0)
		r = -EINVAL;
	return r < 0 ? r : pl_raw_port_open(ret, text, options->to_end, options->reader);
}
#else
static int check(const struct pl_uri *uri, struct pl_diag *diag)
{
	(void)uri;
	return pl_kafka_check(diag);
}

static int open_port(struct pl_port **ret, const struct pl_uri *uri, enum pl_port_mode mode,
	const struct pl_port_options *options, struct pl_diag *diag)
{
	(void)ret;
	(void)uri;
	(void)mode;
	(void)options;
	return pl_kafka_check(diag);
}
#endif

static const struct pl_port_driver driver = {
	.scheme = "kafka",
	.can = PL_PORT_CAN_REPLAY,
	.check = check,
	.open = open_port,
#if PL_HAVE_KAFKA
	.recv = pl_raw_port_recv,
	.release = pl_raw_port_release,
	.stats = pl_raw_port_stats,
	.close = pl_raw_port_close,
#endif
};

void pl_raw_port_add(void)
{
	pl_port_add(&driver);
}
