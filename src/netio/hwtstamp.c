/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds whether a driver stamps received frames with the NIC's time, and turns that on. */
#include "netio/hwtstamp.h"

#include <errno.h>
#include <linux/net_tstamp.h>
#include <linux/sockios.h>
#include <string.h>

#include "netio/caps.h"
#include "netio/link.h"

static int call(const char *ifname, unsigned long request, struct hwtstamp_config *config)
{
	struct ifreq req;

	return pl_link_ask(ifname, request, config, &req);
}

bool pl_hwtstamp_is_on(const char *ifname)
{
	struct hwtstamp_config config = { 0 };

	return call(ifname, SIOCGHWTSTAMP, &config) == 0 && config.rx_filter == HWTSTAMP_FILTER_ALL;
}

static int tell(const char *ifname, int r, struct pl_diag *diag)
{
	char caps[96];

	switch (r) {
	case -EPERM:
	case -EACCES:
		pl_caps_text(pl_caps_missing(PL_CAP_NET_ADMIN), caps, sizeof(caps));
		pl_diag_set(diag,
			"%s: hwtstamp=yes changes a setting of the interface, which needs %s; or "
			"have an administrator set it (hwstamp_ctl -i %s -r 1) and leave the key out",
			ifname,
			caps[0] != '\0' ? caps : "privileges that this process lacks (EPERM)",
			ifname);
		return -EPERM;
	case -EOPNOTSUPP:
	case -ENOTTY:
	case -EINVAL:
		pl_diag_set(diag,
			"%s: hwtstamp=yes: its driver has no hardware timestamps of received frames "
			"('ethtool -T %s' tells what it has); without the key the kernel's times are "
			"taken",
			ifname, ifname);
		return -EOPNOTSUPP;
	case -ERANGE:
		pl_diag_set(diag,
			"%s: hwtstamp=yes: its NIC does not stamp every received frame, only those of "
			"PTP ('ethtool -T %s' tells); without the key the kernel's times are taken",
			ifname, ifname);
		return r;
	default:
		pl_diag_set(diag, "%s: hwtstamp=yes: %s", ifname, strerror(-r));
		return r;
	}
}

int pl_hwtstamp_ask(const char *ifname, struct pl_diag *diag)
{
	struct hwtstamp_config before = { .tx_type = HWTSTAMP_TX_OFF }, config;
	int r;

	if (call(ifname, SIOCGHWTSTAMP, &before) < 0)
		before = (struct hwtstamp_config){ .tx_type = HWTSTAMP_TX_OFF };
	/* Already set: needs no privilege, and the driver is not configured again. */
	if (before.rx_filter == HWTSTAMP_FILTER_ALL)
		return 0;
	/* tx_type stays as it is: transmit stamps belong to other programs. */
	before.flags = 0;
	config = before;
	config.rx_filter = HWTSTAMP_FILTER_ALL;
	r = call(ifname, SIOCSHWTSTAMP, &config);
	/* The driver returns the filter that it set. If that is not every frame, the old one is
	 * restored. */
	if (r == 0 && config.rx_filter != HWTSTAMP_FILTER_ALL) {
		(void)call(ifname, SIOCSHWTSTAMP, &before);
		r = -ERANGE;
	}
	return r < 0 ? tell(ifname, r, diag) : 0;
}
