/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs and prints the demonstration of packets. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/complain.h"
#include "base/exit_code.h"
#include "base/num.h"
#include "demo/demo.h"
#include "demo/packets.h"
#include "runtime/confine.h"
#include "runtime/signals.h"
#include "show/json_line.h"

#define SECOND_NS  UINT64_C(1000000000)
#define PACKETS_NS (30 * SECOND_NS)

static volatile sig_atomic_t stop;

static void on_stop(int signo)
{
	(void)signo;
	stop = 1;
}

static void tell_line(void *arg, double seconds, const char *line)
{
	(void)arg;
	printf("%02d:%02d  %s\n", (int)seconds / 60, (int)seconds % 60, line);
	fflush(stdout);
}

/* "ADDRESS:PORT" */
static const char *end_text(char *text, size_t size, const struct pl_addr *addr, uint16_t port)
{
	char address[PL_ADDR_TEXT_MAX];

	(void)pl_format_addr(address, addr);
	snprintf(text, size, "%s:%u", address, port);
	return text;
}

static void print_flows(const struct pl_packets_demo_result *r)
{
	char src[PL_ADDR_TEXT_MAX + 8], dst[PL_ADDR_TEXT_MAX + 8];

	printf("\nflows with the most bytes:\n%-21s %-17s %8s %9s %9s %9s %10s\n", "src", "dst",
		"packets", "bytes", "handshake", "RTT", "sent again");
	for (uint32_t i = 0; i < r->n_top; i++) {
		const struct pl_flow288 *f = &r->top[i];

		printf("%-21s %-17s %8u %9" PRIu64 " %6.1f ms %6.1f ms %10u\n",
			end_text(src, sizeof(src), &f->src, f->sport),
			end_text(dst, sizeof(dst), &f->dst, f->dport), f->pkts_fwd + f->pkts_rev,
			f->bytes_fwd + f->bytes_rev, (f->hs_external_us + f->hs_internal_us) / 1e3,
			f->rtt_min_us / 1e3, f->retrans_fwd + f->retrans_rev);
	}
}

static void print_packets(const struct pl_packets_demo_result *r)
{
	printf("\n%.1f s: %" PRIu64 " packets, %" PRIu64 " records, %" PRIu64 " records of flows\n",
		r->seconds, r->packets, r->records, r->flows);
	printf("found:  port scans %" PRIu64 " of %" PRIu64 ", SYN floods %" PRIu64 " of %" PRIu64
	       ",\n        retransmission storms %" PRIu64 " of %" PRIu64 ", false alarms %" PRIu64
	       "\n"
	       "        connections whole %" PRIu64 " of %" PRIu64 ", segments sent again %" PRIu64
	       " of %" PRIu64 "\n",
		r->scan_found, r->scan, r->flood_found, r->flood, r->storm_found, r->storm,
		r->false_alarms, r->connections_found, r->connections, r->retransmissions, r->lost);
	printf("totals: packets %" PRIu64 " = records %" PRIu64 "\n"
	       "        records %" PRIu64 " = in flows %" PRIu64 " + not in flows %" PRIu64 "\n"
	       "        %s\n",
		r->packets, r->records, r->records, r->packets_in_flows, r->not_in_flows,
		pl_packets_demo_right(r) ? "they agree" : "THEY DO NOT AGREE");
	print_flows(r);
	printf("\nnext:   pathline tap packet:eth0           a record of every packet of yours\n"
	       "        pathline query portscan packet:eth0   a standing question over them\n"
	       "        pathline gen packets --help        the same traffic to a file or wire\n");
}

int pl_demo_packets(const struct pl_demo_options *options)
{
	static const struct pl_privilege_options rights = { .user = NULL };
	static struct pl_confine confine;
	const struct pl_packets_demo_options demo = {
		.duration_ns = options->duration_ns != 0 ? options->duration_ns : PACKETS_NS,
		.seed = options->seed,
		.paced = !options->headless,
		.to = options->to,
		.tell = strcmp(options->form, "table") == 0 ? tell_line : NULL,
		.stop = &stop,
		.confine = &confine,
	};
	struct pl_packets_demo_result result;
	struct pl_diag diag = { .text = "" };
	struct pl_signals signals;
	struct pl_json_line line;
	int r;

	pl_signals_catch(&signals, on_stop, (const int[]){ 0 });
	if (demo.tell != NULL)
		printf("200 clients, 10 servers, 100 connections per second; four standing questions\n\n");
	pl_confine_init(&confine, &rights);
	r = pl_packets_demo(&demo, &result, &diag);
	if (r == 0 && pl_confine_gap(&confine) != NULL)
		pl_complain("%s", pl_confine_gap(&confine));
	pl_confine_end(&confine);
	if (r < 0) {
		pl_complain("%s", diag.text[0] != '\0' ? diag.text : strerror(-r));
		return r == -EINVAL ? PL_EXIT_USAGE : PL_EXIT_UNAVAILABLE;
	}
	if (demo.tell != NULL) {
		print_packets(&result);
	} else {
		pl_packets_demo_json(&result, pl_json_line_begin(&line, "demo-packets"));
		pl_json_line_end(&line);
	}
	return pl_packets_demo_right(&result) && fflush(stdout) == 0 ? PL_EXIT_OK : PL_EXIT_FAILED;
}
