/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every vector through the telemetry actions of the data plane, whole, cut after every byte, and changed; the
 * packets inside reports too, since most of what is malformed stands there. What must hold is in
 * tests/fuzz/actions.h. Run as: actions_test FOLDER
 */
#include <ftw.h>

#include "../fuzz/actions.h"
#include "netio/port.h"
#include "wire/report.h"

#define VARIANTS 200 /* of each packet, with bytes changed */

static char *files[512];
static size_t n_files;
static unsigned int packets, inner;
static struct pl_rng rng; /* seed 1 */

static int gather(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	size_t len = strlen(path);

	(void)st;
	(void)ftw;
	if (type == FTW_F && len > 5 && strcmp(path + len - 5, ".pcap") == 0 && n_files < 512)
		files[n_files++] = strdup(path);
	return 0;
}

/* An inner packet of bare IP gets an Ethernet header. */
static void whole(struct pl_cursor c, enum pl_link link)
{
	static uint8_t bytes[ACTIONS_BYTES_MAX];
	struct pl_build b = pl_build(bytes, sizeof(bytes));
	size_t left = pl_cursor_left(&c);

	if (left == 0 || left > sizeof(bytes) - 14)
		return;
	if (link == PL_LINK_RAW_IP)
		pl_put_eth(&b, *c.pos >> 4 == 6 ? PL_ETH_IPV6 : PL_ETH_IPV4, 0);
	else if (link != PL_LINK_ETHERNET)
		return;
	pl_put(&b, c.pos, left);
	packets++;
	for (size_t n = b.len; n > 0; n -= n > 200 ? 97 : 1)
		actions_check(bytes, n);
	/* behind the addresses, so that most of them still pass the parser */
	for (unsigned int i = 0; i < VARIANTS && b.len > 34; i++) {
		uint8_t variant[ACTIONS_BYTES_MAX];
		size_t reach = b.len - 34 < 160 ? b.len - 34 : 160;

		memcpy(variant, bytes, b.len);
		for (uint64_t k = 1 + pl_rng_below(&rng, 3); k > 0; k--)
			variant[34 + pl_rng_below(&rng, reach)] = (uint8_t)pl_rng_u64(&rng);
		actions_check(variant, b.len);
	}
}

static void of_reports(const struct pl_packet *p)
{
	struct pl_report_iter it;
	struct pl_report report;
	struct pl_layers l;
	enum pl_verdict v;

	if (pl_layers_walk(&l, pl_cursor(p->data, p->len), (enum pl_link)p->link, true) !=
			PL_V_OK ||
		l.flow.proto != PL_IP_UDP || pl_report_begin(&it, l.payload, -1, true) != PL_V_OK)
		return;
	while (pl_report_next(&it, &report, &v)) {
		inner++;
		whole(report.inner, report.inner_link);
	}
}

int main(int argc, char **argv)
{
	if (argc != 2 || nftw(argv[1], gather, 16, FTW_PHYS) != 0)
		return 2;
	pl_rng_seed(&rng, 1);
	for (size_t i = 0; i < n_files; i++) {
		static struct pl_batch batch;
		struct pl_port *port = NULL;
		struct pl_diag diag = { 0 };

		if (!ok(pl_port_open(&port, files[i], PL_PORT_RECV, NULL, &diag) == 0, "%s %s",
			    files[i], diag.text))
			continue;
		while (pl_port_recv(port, &batch, 0, &diag) > 0) {
			for (uint32_t k = 0; k < batch.n; k++) {
				const struct pl_packet *p = &batch.pkts[k];

				whole(pl_cursor(p->data, p->len), (enum pl_link)p->link);
				of_reports(p);
			}
			pl_port_release(port, &batch);
		}
		pl_port_close(port);
		ok(true, "%s", files[i]);
		free(files[i]);
	}
	ok(n_files > 0 && packets > 200 && inner > 80, "%u packets, %u of them in reports", packets,
		inner);
	actions_end();
	return pl_test_done();
}
