/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Our engines on the wire of a guest: responder and requester behind a Unix datagram socket, a
 * frame to a datagram. Address resolution is answered, so that the guest finds us. Commands are
 * lines of words; one line comes back, which begins with ok or error. Numbers are as strtoull takes
 * them.
 *
 *   peer WIRE PORT PCAP              binds WIRE, sends to PORT, writes every frame of RoCE to the
 *                                    capture file PCAP; WIRE - : PORT is a network interface, whose
 *                                    frames are read and sent
 *
 *   region BYTES                     ok key= va=
 *   answer rc|uc ADDRESS QPN PSN     a queue pair of the responder for that peer; ok qpn=
 *   ask rc|uc ADDRESS QPN PSN [OWN]  one of the requester; its own number is drawn or OWN; ok qpn=
 *   receive QPN N                    posts N receives without memory
 *   write QPN VA KEY HEX [IMMEDIATE] | add QPN VA KEY VALUE | swap QPN VA KEY COMPARE NEW
 *   fill QPN VA KEY BYTES COUNT      COUNT writes of BYTES one behind the other, of bytes that tell
 *                                    their position
 *   drop N                           every Nth frame to the guest is lost from now on; 0: none
 *   wait QPN MS                      lets the wire run until none of its work waits, or so long; ok
 *                                    done= failed= result= original=
 *   run MS                           lets it run so long
 *   listen PORT                      connections that are asked for there are taken: our region is
 *                                    told in the private data (va 64, key 32, bytes 32, big-endian)
 *   call ADDRESS PORT                asks for one; ok qpn=, of the requester
 *   event MS                         what happened to it, waiting so long; ok event= reason= va=
 *                                    key= bytes=, the last three as the peer told
 *   hangup
 *   get OFFSET BYTES                 of the region; ok HEX
 *   done                             completions of receives: ok N, then imm of the last
 *   status QPN                       of the requester; ok psn= unacked= posted= failed=
 *   counters                         ok name=value …, of both, those that are not zero
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/num.h"
#include "netio/capture_writer.h"
#include "rdma/cm.h"
#include "rdma/requester.h"
#include "rdma/responder.h"

enum { MAX_WORDS = 8, REGION_MAX = 1 << 20, FRAME_MAX = 65536 };

static const uint8_t our_mac[6] = { 0x02, 0, 0, 0, 0, 0xfe };
static const uint8_t guest_mac[6] = { 0x52, 0x54, 0, 0, 0, 1 };
static struct pl_addr our4, our6;

static int wire;
static struct sockaddr_un port = { .sun_family = AF_UNIX };
static struct pl_capture_writer capture;
static struct pl_responder *responder;
static struct pl_requester *requester;
static struct pl_connector *connector;
static uint32_t region_key, connection, calling_qpn;
static unsigned int given_up; /* peers that fell silent */
static struct pl_connection_event event;
static uint8_t event_private[16];
static uint8_t *region;
static size_t region_bytes;
static uint32_t receives, last_imm;
static uint64_t done, failed_work, last_result, last_original;
static unsigned long drop_every, to_guest;

static char *words[MAX_WORDS + 1];
static int n_words;

static uint64_t number(int i)
{
	return i < n_words ? strtoull(words[i], NULL, 0) : 0;
}

#define SILENT_NS UINT64_C(8000000000)
#define REGION_VA UINT64_C(0x7000000000)
#define ASKED_PSN 0x654321u /* with which whoever calls us begins */

/* ---- the wire ---- */

static void record(const void *frame, size_t n)
{
	static struct pl_batch one = { .n = 1 };

	one.pkts[0] = (struct pl_packet){ .data = frame,
		.len = (uint32_t)n,
		.wire_len = (uint32_t)n,
		.link = PL_LINK_ETHERNET,
		.ts_ns = pl_clock_real_ns() };
	pl_capture_writer_add(&capture, &one);
}

static void send_frame(const void *frame, size_t n, bool roce)
{
	if (roce) {
		record(frame, n);
		if (drop_every != 0 && ++to_guest % drop_every == 0)
			return;
	}
	/* A full socket is a lost frame, as on any wire. */
	if (port.sun_path[0] == '\0')
		(void)send(wire, frame, n, 0);
	else
		(void)sendto(wire, frame, n, 0, (const struct sockaddr *)&port, sizeof(port));
}

static void send_frames(struct pl_frames *frames)
{
	for (uint32_t i = 0; i < frames->batch.n; i++)
		send_frame(frames->batch.pkts[i].data, frames->batch.pkts[i].len, true);
	pl_frames_clear(frames);
}

/* ARP: who has our address? */
static void answer_arp(const uint8_t *f, size_t n)
{
	uint8_t reply[42];

	if (n < 42 || f[21] != 1 || memcmp(f + 38, our4.b + 12, 4) != 0)
		return;
	memcpy(reply, f, sizeof(reply));
	memcpy(reply, f + 6, 6);
	memcpy(reply + 6, our_mac, 6);
	reply[21] = 2;
	memcpy(reply + 22, our_mac, 6);
	memcpy(reply + 28, our4.b + 12, 4);
	memcpy(reply + 32, f + 22, 10);
	send_frame(reply, sizeof(reply), false);
}

static uint16_t checksum(const uint8_t *p, size_t n, uint32_t sum)
{
	for (size_t i = 0; i + 1 < n; i += 2)
		sum += (uint32_t)p[i] << 8 | p[i + 1];
	while (sum >> 16 != 0)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

/* Neighbour solicitation (RFC 4861, 7.2.4): an advertisement with our link-layer address. */
static void answer_neighbour(const uint8_t *f, size_t n)
{
	uint8_t a[86] = { 0 };
	uint16_t sum;

	if (n < 78 || f[20] != 58 || f[54] != 135 || memcmp(f + 62, our6.b, 16) != 0)
		return;
	memcpy(a, f + 6, 6);
	memcpy(a + 6, our_mac, 6);
	memcpy(a + 12, "\x86\xdd\x60\0\0\0\0\x20\x3a\xff", 10);
	memcpy(a + 22, our6.b, 16);
	memcpy(a + 38, f + 22, 16);
	a[54] = 136;
	a[58] = 0x60; /* solicited, override */
	memcpy(a + 62, our6.b, 16);
	a[78] = 2;
	a[79] = 1;
	memcpy(a + 80, our_mac, 6);
	/* The pseudo header: addresses, length 32, next header 58. */
	sum = checksum(a + 22, 64, 32 + 58);
	a[56] = (uint8_t)(sum >> 8);
	a[57] = (uint8_t)sum;
	send_frame(a, sizeof(a), false);
}

static void take_completions(void)
{
	struct pl_rdma_completion in;
	struct pl_rdma_completed out;

	while (pl_responder_completions(responder, &in, 1) > 0) {
		receives += in.kind == PL_RDMA_DONE_WRITE || in.kind == PL_RDMA_DONE_SEND;
		if (in.have_imm)
			last_imm = in.imm;
	}
	while (pl_requester_completions(requester, &out, 1) > 0) {
		done++;
		failed_work += out.result != PL_RDMA_RESULT_OK;
		last_result = out.result;
		last_original = out.original;
	}
}

/* ---- connections ---- */

static void put_be(uint8_t *p, uint64_t v, int n)
{
	for (int i = 0; i < n; i++)
		p[i] = (uint8_t)(v >> 8 * (n - 1 - i));
}

static uint64_t get_be(const uint8_t *p, int n)
{
	uint64_t v = 0;

	for (int i = 0; i < n; i++)
		v = v << 8 | p[i];
	return v;
}

static struct pl_connection_terms our_terms(uint32_t qpn, uint32_t psn)
{
	static uint8_t told[16];

	put_be(told, REGION_VA, 8);
	put_be(told + 8, region_key, 4);
	put_be(told + 12, region_bytes, 4);
	return (struct pl_connection_terms){ .qpn = qpn,
		.psn = psn,
		.service = PL_ROCE_RC,
		.mtu = 1024,
		.resources = 4,
		.depth = 4,
		.retries = 7,
		.rnr_retries = 7,
		.ack_timeout = 16,
		.private = told,
		.private_len = sizeof(told) };
}

static struct pl_rdma_qp answering(uint8_t service, uint32_t peer_qpn, uint32_t psn)
{
	return (struct pl_rdma_qp){ .service = service,
		.access = PL_RDMA_READ | PL_RDMA_WRITE | PL_RDMA_ATOMIC,
		.state = PL_RDMA_READY,
		.rnr_timer = 12,
		.depth = 4,
		.mtu = 1024,
		.pkey = PL_ROCE_PKEY,
		.domain = 1,
		.psn = psn,
		.peer_qpn = peer_qpn,
		.receives = 64 };
}

static struct pl_requester_qp asking(uint8_t service)
{
	return (struct pl_requester_qp){ .service = service,
		.mtu = 1024,
		.pkey = PL_ROCE_PKEY,
		.messages = 4096,
		.message_bytes = 65536,
		.window = 64,
		.atomics = service == PL_ROCE_RC ? 4 : 0,
		.timeout_ns = 500000000,
		.retries = 60, /* an emulated machine may stand still for a while */
		.rnr_retries = 7 };
}

/* A queue pair of the responder for whoever asks. */
static void take_request(void)
{
	struct pl_rdma_qp qp = answering(event.terms.service, event.terms.qpn, ASKED_PSN);
	struct pl_connection_terms terms;
	uint32_t qpn;

	qp.mtu = event.terms.mtu;
	qp.path = event.path;
	if (pl_responder_qp_add(responder, &qp, &qpn) < 0) {
		pl_connector_reject(connector, event.id, 3, pl_clock_mono_ns());
		return;
	}
	terms = our_terms(qpn, ASKED_PSN);
	pl_connector_accept(connector, event.id, &terms, pl_clock_mono_ns());
}

static void take_connections(void)
{
	struct pl_connection_event e;

	while (pl_connector_event(connector, &e)) {
		event = e;
		connection = e.id;
		given_up += e.kind == PL_CONNECTION_SILENT;
		memset(event_private, 0, sizeof(event_private));
		if (e.terms.private != NULL)
			memcpy(event_private, e.terms.private,
				e.terms.private_len < sizeof(event_private)
					? e.terms.private_len
					: sizeof(event_private));
		if (e.kind == PL_CONNECTION_REQUEST)
			take_request();
		else if (e.kind == PL_CONNECTION_CONNECTED && calling_qpn != 0)
			pl_requester_qp_ready(requester, calling_qpn, e.terms.psn, e.terms.qpn);
	}
}

static void take_frame(const uint8_t *f, size_t n)
{
	static uint8_t out[1 << 20];
	static struct pl_batch batch;
	struct pl_frames frames;
	struct pl_roce packet;
	uint8_t cause = 0;

	if (n >= 14 && f[12] == 0x08 && f[13] == 0x06)
		return answer_arp(f, n);
	if (n >= 21 && f[12] == 0x86 && f[13] == 0xdd && f[20] == 58)
		return answer_neighbour(f, n);
	batch.n = 1;
	batch.pkts[0] = (struct pl_packet){ .data = f,
		.len = (uint32_t)n,
		.wire_len = (uint32_t)n,
		.link = PL_LINK_ETHERNET,
		.ts_ns = pl_clock_real_ns() };
	if (pl_roce_parse(&packet, pl_cursor(f, n), PL_LINK_ETHERNET) == PL_ROCE_F_OK &&
		packet.qpn == 1) {
		record(f, n);
		pl_connector_receive(connector, &packet, pl_clock_mono_ns());
		take_connections();
		return;
	}
	pl_frames_init(&frames, out, sizeof(out));
	pl_responder_batch(responder, &batch, &cause);
	if (cause != PL_RDMA_C_NOT_ROCE)
		record(f, n);
	pl_requester_batch(requester, &batch, &cause, pl_clock_mono_ns());
	while (!pl_responder_answers(responder, &frames))
		send_frames(&frames);
	send_frames(&frames);
	take_completions();
}

static void send_work(void)
{
	static uint8_t out[1 << 20];
	struct pl_frames frames;

	pl_frames_init(&frames, out, sizeof(out));
	while (!pl_requester_send(requester, pl_clock_mono_ns(), &frames))
		send_frames(&frames);
	send_frames(&frames);
	while (!pl_connector_send(connector, pl_clock_mono_ns(), &frames))
		send_frames(&frames);
	send_frames(&frames);
	take_completions();
	take_connections();
}

/* Whether the wire had a frame within so many ms. */
static bool step(int ms)
{
	static uint8_t frame[FRAME_MAX];
	struct pollfd ready = { wire, POLLIN, 0 };
	ssize_t n;

	send_work();
	if (poll(&ready, 1, ms) <= 0)
		return false;
	while ((n = recv(wire, frame, sizeof(frame), MSG_DONTWAIT)) > 0)
		take_frame(frame, (size_t)n);
	return true;
}

static uint64_t deadline(int word)
{
	return pl_clock_mono_ns() + number(word) * 1000000;
}

/* ---- commands ---- */

static int path_to(const char *address, struct pl_roce_path *ret)
{
	*ret = (struct pl_roce_path){ .ttl = 64, .sport = 0xc123 };
	memcpy(ret->smac, our_mac, 6);
	memcpy(ret->dmac, guest_mac, 6);
	if (pl_parse_addr(address, &ret->dst) < 0)
		return -EINVAL;
	ret->src = pl_addr_is_v4(&ret->dst) ? our4 : our6;
	return 0;
}

static void do_region(void)
{
	struct pl_rdma_region r = { .domain = 1,
		.access = PL_RDMA_READ | PL_RDMA_WRITE | PL_RDMA_ATOMIC };
	uint32_t key;
	int error;

	region_bytes = number(1);
	if (region_bytes == 0 || region_bytes > REGION_MAX || region != NULL) {
		puts("error region");
		return;
	}
	region = aligned_alloc(4096, (region_bytes + 4095) & ~(size_t)4095);
	memset(region, 0, region_bytes);
	r.base = region;
	r.bytes = region_bytes;
	r.va = REGION_VA;
	error = pl_responder_region_add(responder, &r, &key);
	region_key = key;
	if (error < 0)
		printf("error %s\n", strerror(-error));
	else
		printf("ok key=0x%x va=0x%llx\n", key, (unsigned long long)r.va);
}

static uint8_t service_of(int word)
{
	return strcmp(words[word], "uc") == 0 ? PL_ROCE_UC : PL_ROCE_RC;
}

static void do_answer(void)
{
	struct pl_rdma_qp qp = answering(service_of(1), (uint32_t)number(3), (uint32_t)number(4));
	uint32_t qpn;
	int error;

	error = path_to(words[2], &qp.path);
	if (error == 0)
		error = pl_responder_qp_add(responder, &qp, &qpn);
	if (error < 0)
		printf("error %s\n", strerror(-error));
	else
		printf("ok qpn=0x%x\n", qpn);
}

static void do_ask(void)
{
	struct pl_requester_qp qp = asking(service_of(1));
	uint32_t qpn;
	int error;

	qp.peer_qpn = (uint32_t)number(3);
	qp.psn = (uint32_t)number(4);
	qp.qpn = (uint32_t)number(5);
	error = path_to(words[2], &qp.path);
	if (error == 0)
		error = pl_requester_qp_add(requester, &qp, &qpn);
	if (error < 0)
		printf("error %s\n", strerror(-error));
	else
		printf("ok qpn=0x%x\n", qpn);
}

static void do_receive(void)
{
	int error = 0;

	for (uint64_t i = 0; i < number(2) && error == 0; i++)
		error = pl_responder_post(responder, (uint32_t)number(1), i, NULL, 0);
	puts(error == 0 ? "ok" : "error");
}

/* Posts, letting the wire run when there is no room. */
static void post(const struct pl_rdma_work *work)
{
	uint64_t until = pl_clock_mono_ns() + UINT64_C(20000000000);
	int error;

	while ((error = pl_requester_post(requester, (uint32_t)number(1), work)) == -EAGAIN &&
		pl_clock_mono_ns() < until)
		step(1);
	if (error < 0)
		printf("error %s\n", strerror(-error));
	else
		puts("ok");
}

static void do_write(void)
{
	static uint8_t data[4096];
	struct pl_rdma_work w = { .kind = PL_RDMA_WORK_WRITE,
		.va = number(2),
		.rkey = (uint32_t)number(3),
		.data = data };

	w.bytes = (uint32_t)strlen(words[4]) / 2;
	for (uint32_t i = 0; i < w.bytes && i < sizeof(data); i++)
		sscanf(words[4] + 2 * i, "%2hhx", &data[i]);
	w.have_imm = n_words > 5;
	w.imm = (uint32_t)number(5);
	post(&w);
}

static void do_fill(void)
{
	static uint8_t data[65536];
	uint32_t bytes = (uint32_t)number(4), qpn = (uint32_t)number(1);
	uint64_t until = pl_clock_mono_ns() + UINT64_C(60000000000);

	for (uint64_t k = 0; k < number(5); k++) {
		struct pl_rdma_work w = { .kind = PL_RDMA_WORK_WRITE,
			.va = number(2) + k * bytes,
			.rkey = (uint32_t)number(3),
			.bytes = bytes,
			.data = data };
		int error;

		for (uint32_t i = 0; i < bytes && i < sizeof(data); i++)
			data[i] = (uint8_t)((k * bytes + i) * 167 >> 3);
		while ((error = pl_requester_post(requester, qpn, &w)) == -EAGAIN &&
			pl_clock_mono_ns() < until)
			step(1);
		if (error < 0) {
			printf("error %s\n", strerror(-error));
			return;
		}
		step(0);
	}
	puts("ok");
}

static void do_atomic(int kind)
{
	struct pl_rdma_work w = { .va = number(2), .rkey = (uint32_t)number(3), .bytes = 8 };

	w.kind = kind;
	w.swap_add = kind == PL_RDMA_WORK_ADD ? number(4) : number(5);
	w.compare = kind == PL_RDMA_WORK_SWAP ? number(4) : 0;
	post(&w);
}

static void do_wait(void)
{
	uint64_t until = deadline(2);
	struct pl_requester_status s;

	while (pl_requester_qp_status(requester, (uint32_t)number(1), &s) == 0 && s.posted > 0 &&
		pl_clock_mono_ns() < until)
		step(5);
	printf("ok done=%llu failed=%llu result=%llu original=0x%llx\n", (unsigned long long)done,
		(unsigned long long)failed_work, (unsigned long long)last_result,
		(unsigned long long)last_original);
}

static void do_run(void)
{
	uint64_t until = deadline(1);

	while (pl_clock_mono_ns() < until)
		step(5);
	puts("ok");
}

static void do_listen(void)
{
	puts(pl_connector_listen(connector, (uint16_t)number(1)) == 0 ? "ok" : "error listen");
}

static void do_call(void)
{
	struct pl_requester_qp qp = asking(PL_ROCE_RC);
	struct pl_connection_terms terms;
	uint32_t id;
	int error;

	error = path_to(words[1], &qp.path);
	if (error == 0)
		error = pl_requester_qp_add(requester, &qp, &calling_qpn);
	terms = our_terms(calling_qpn, 0);
	event.kind = 0;
	if (error == 0)
		error = pl_connector_connect(
			connector, &qp.path, (uint16_t)number(2), &terms, pl_clock_mono_ns(), &id);
	if (error < 0)
		printf("error %s\n", strerror(-error));
	else
		printf("ok qpn=0x%x\n", calling_qpn);
}

static void do_event(void)
{
	uint64_t until = deadline(1);

	while (event.kind == 0 && pl_clock_mono_ns() < until)
		step(5);
	printf("ok event=%u reason=%u va=0x%llx key=0x%llx bytes=%llu\n", event.kind, event.reason,
		(unsigned long long)get_be(event_private, 8),
		(unsigned long long)get_be(event_private + 8, 4),
		(unsigned long long)get_be(event_private + 12, 4));
	event.kind = 0;
}

static void do_hangup(void)
{
	puts(pl_connector_disconnect(connector, connection, pl_clock_mono_ns()) == 0
			? "ok"
			: "error hangup");
}

static void do_get(void)
{
	size_t at = number(1), n = number(2);

	if (at > region_bytes || n > region_bytes - at) {
		puts("error get");
		return;
	}
	printf("ok ");
	for (size_t i = 0; i < n; i++)
		printf("%02x", region[at + i]);
	putchar('\n');
}

static void do_status(void)
{
	struct pl_requester_status s;

	if (pl_requester_qp_status(requester, (uint32_t)number(1), &s) < 0)
		puts("error status");
	else
		printf("ok psn=0x%x unacked=0x%x posted=%u failed=%d\n", s.psn, s.unacked, s.posted,
			s.failed);
}

static void count(const char *name, const struct pl_counter *c)
{
	if (pl_counter_read(c) != 0)
		printf(" %s=%llu", name, (unsigned long long)pl_counter_read(c));
}

static void do_counters(void)
{
	const struct pl_responder_counters *r = pl_responder_counters(responder);
	const struct pl_requester_counters *q = pl_requester_counters(requester);

	printf("ok");
	for (int i = 0; i < PL_RDMA_CAUSE_MAX; i++)
		count(pl_rdma_cause_name((enum pl_rdma_cause)i), &r->causes[i]);
	count("writes", &r->writes);
	count("reads", &r->reads);
	count("adds", &r->adds);
	count("swaps", &r->swaps);
	count("repeated", &q->repeated);
	count("timeouts", &q->timeouts);
	count("acks", &q->acks);
	count("atomic_acks", &q->atomic_acks);
	count("sequence_naks", &q->sequence_naks);
	count("error_naks", &q->error_naks);
	count("rnr_naks", &q->rnr_naks);
	count("ghosts", &q->ghosts);
	count("foreign", &q->foreign);
	count("asked", &pl_connector_counters(connector)->asked);
	printf(" given_up=%u\n", given_up);
}

static const struct {
	const char *name;
	void (*run)(void);
	int words; /* at least */
} commands[] = {
	{ "region", do_region, 2 },
	{ "answer", do_answer, 5 },
	{ "ask", do_ask, 5 },
	{ "receive", do_receive, 3 },
	{ "write", do_write, 5 },
	{ "fill", do_fill, 6 },
	{ "wait", do_wait, 3 },
	{ "run", do_run, 2 },
	{ "listen", do_listen, 2 },
	{ "call", do_call, 3 },
	{ "event", do_event, 2 },
	{ "hangup", do_hangup, 1 },
	{ "get", do_get, 3 },
	{ "status", do_status, 2 },
	{ "counters", do_counters, 1 },
};

static void run(char *line)
{
	n_words = 0;
	for (char *w = strtok(line, " \t\r\n"); w != NULL && n_words < MAX_WORDS;
		w = strtok(NULL, " \t\r\n"))
		words[n_words++] = w;
	if (n_words == 0)
		return;
	if (strcmp(words[0], "add") == 0 && n_words == 5)
		return do_atomic(PL_RDMA_WORK_ADD);
	if (strcmp(words[0], "swap") == 0 && n_words == 6)
		return do_atomic(PL_RDMA_WORK_SWAP);
	if (strcmp(words[0], "drop") == 0) {
		drop_every = number(1);
		puts("ok");
		return;
	}
	if (strcmp(words[0], "done") == 0) {
		printf("ok %u imm=0x%x\n", receives, last_imm);
		return;
	}
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (strcmp(words[0], commands[i].name) == 0 && n_words >= commands[i].words)
			return commands[i].run();
	}
	printf("error what is '%s'\n", words[0]);
}

static int open_interface(const char *name)
{
	struct sockaddr_ll here = { .sll_family = AF_PACKET,
		.sll_protocol = htons(ETH_P_ALL),
		.sll_ifindex = (int)if_nametoindex(name) };
	int one = 1;

	wire = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_ALL));
	if (wire < 0 || bind(wire, (const struct sockaddr *)&here, sizeof(here)) < 0)
		return -1;
	return setsockopt(wire, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof(one));
}

static int open_sockets(const char *own, const char *other)
{
	struct sockaddr_un here = { .sun_family = AF_UNIX };

	if (strlen(own) >= sizeof(here.sun_path) || strlen(other) >= sizeof(port.sun_path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	strcpy(here.sun_path, own);
	strcpy(port.sun_path, other);
	wire = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	return wire < 0 ? -1 : bind(wire, (const struct sockaddr *)&here, sizeof(here));
}

int main(int argc, char **argv)
{
	struct pl_connector_options options = { 0 };
	static char line[16384];
	int size = 1 << 22, fd, error;

	if (argc != 4)
		return 2;
	if ((strcmp(argv[1], "-") == 0 ? open_interface(argv[2]) : open_sockets(argv[1], argv[2])) <
		0) {
		perror(argv[2]);
		return 1;
	}
	setsockopt(wire, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	setsockopt(wire, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	pl_parse_addr("10.77.0.254", &our4);
	pl_parse_addr("fd00:77::fe", &our6);
	if (pl_responder_new(&responder, &(struct pl_responder_options){ 0 }) < 0 ||
		pl_requester_new(&requester, &(struct pl_requester_options){ 0 }) < 0)
		return 1;
	fd = open(argv[3], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0 || pl_capture_writer_init(&capture, fd, argv[3], UINT16_MAX) < 0) {
		perror(argv[3]);
		return 1;
	}
	options.own = (const struct pl_addr[]){ our4, our6 };
	options.n_own = 2;
	options.silent_ns = SILENT_NS;
	memcpy(options.smac, our_mac, 6);
	if (pl_connector_new(&connector, &options) < 0)
		return 1;
	setvbuf(stdout, NULL, _IOLBF, 1 << 16);
	/* Between commands the wire goes on. */
	for (;;) {
		struct pollfd ready[2] = { { 0, POLLIN, 0 }, { wire, POLLIN, 0 } };

		send_work();
		poll(ready, 2, 5);
		if (ready[1].revents != 0)
			step(0);
		if (ready[0].revents != 0) {
			if (fgets(line, sizeof(line), stdin) == NULL)
				break;
			run(line);
		}
	}
	error = pl_capture_writer_done(&capture);
	pl_connector_free(connector);
	pl_requester_free(requester);
	pl_responder_free(responder);
	free(region);
	return error == 0 ? 0 : 1;
}
