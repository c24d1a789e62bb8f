/* SPDX-License-Identifier: BSD-2-Clause */
/* Joins a connection manager to a NIC. */
#include "nic/manage.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int pl_manage_open(struct pl_manage *m, struct pl_nic *nic, struct pl_connector_options options,
	struct pl_addr **ret_own, uint32_t *ret_n, struct pl_diag *diag)
{
	int r = pl_nic_addresses(nic, ret_own, ret_n, diag);

	if (r < 0)
		return r;
	m->nic = nic;
	m->changes = pl_nic_changes(nic);
	options.own = *ret_own;
	options.n_own = *ret_n;
	memcpy(options.smac, pl_nic_mac(nic), sizeof(options.smac));
	r = pl_connector_new(&m->connector, &options);
	if (r < 0)
		pl_diag_set(diag, "the connection manager: %s", strerror(-r));
	return r;
}

void pl_manage_close(struct pl_manage *m)
{
	pl_connector_free(m->connector);
	m->connector = NULL;
}

bool pl_manage_follow(struct pl_manage *m)
{
	const uint32_t changes = pl_nic_changes(m->nic);
	struct pl_addr *own = NULL;
	uint32_t n = 0;
	int r;

	if (changes == m->changes)
		return false;
	r = pl_nic_addresses(m->nic, &own, &n, NULL);
	/* Without memory the next turn tries again. */
	if ((r == 0 || r == -EADDRNOTAVAIL) && pl_connector_own(m->connector, own, n) == 0)
		m->changes = changes;
	free(own);
	return true;
}

void pl_manage_packet(struct pl_manage *m, const struct pl_packet *packet, uint64_t now_ns)
{
	struct pl_roce p;

	if (pl_roce_parse(&p, pl_cursor(packet->data, packet->len), (enum pl_link)packet->link) ==
			PL_ROCE_F_OK &&
		p.qpn == 1)
		pl_connector_receive(m->connector, &p, now_ns);
}
