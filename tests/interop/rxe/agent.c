/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What runs in the guest: verbs on its soft-RoCE device, by a line of words each. Answers are lines
 * of `done` or `cm`, then one that begins with `ok` or `error`. Numbers are as strtoull takes them.
 *
 *   region ID BYTES                          memory for everything; ok key= va=
 *   pair ID rc|uc                            a queue pair; ok qpn=
 *   connect ID OWN ADDRESS QPN EXPECT FIRST MTU   to ready: our address, the peer, the number
 *                                                 expected from it, our
 *                                            first
 *   state ID                                 ok state= expect= first=
 *   receive ID REGION OFFSET BYTES
 *   write|read ID REGION OFFSET BYTES VA KEY [IMMEDIATE]
 *   send ID REGION OFFSET BYTES
 *   add ID REGION OFFSET VA KEY VALUE        the old value comes to OFFSET
 *   swap ID REGION OFFSET VA KEY COMPARE NEW
 *   done ID MS                               completions, waiting so long for the first; ok N
 *   put REGION OFFSET HEX | get REGION OFFSET BYTES
 *   listen PORT REGION | call ADDRESS PORT REGION [SECONDS]    the connection manager; the region
 *   (va 64, key 32, bytes 32, big-endian)
 *                                            is told to the peer in the private data; the caller
 *                                            writes 64 bytes from
 *                                            REGION's beginning to the peer's, and hangs up
 */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MAX_IDS = 16, MAX_WORDS = 16, CM_MS = 8000 };

static struct ibv_context *device;
static struct ibv_pd *domain;
static struct region {
	uint8_t *at;
	size_t bytes;
	struct ibv_mr *mr;
} regions[MAX_IDS];
static struct pair {
	struct ibv_qp *qp;
	struct ibv_cq *cq;
} pairs[MAX_IDS];

static char *words[MAX_WORDS + 1];
static int n_words;

static uint64_t number(int i)
{
	return i < n_words ? strtoull(words[i], NULL, 0) : 0;
}

static void answer(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
	fflush(stdout);
}

static void failed(const char *what, int error)
{
	answer("error %s: %s", what, strerror(error));
}

static struct region *region_of(int word)
{
	struct region *r = &regions[number(word) % MAX_IDS];

	return r->mr != NULL ? r : NULL;
}

static struct pair *pair_of(int word)
{
	struct pair *p = &pairs[number(word) % MAX_IDS];

	return p->qp != NULL ? p : NULL;
}

/* BYTES at OFFSET of REGION, three words from `word` on; offset and length within it. */
static int piece(int word, uint64_t bytes, struct ibv_sge *ret)
{
	struct region *r = region_of(word);
	uint64_t at = number(word + 1);

	if (r == NULL || at > r->bytes || bytes > r->bytes - at)
		return EINVAL;
	*ret = (struct ibv_sge){ (uintptr_t)r->at + at, (uint32_t)bytes, r->mr->lkey };
	return 0;
}

static int open_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	if (list == NULL || list[0] == NULL)
		return ENODEV;
	device = ibv_open_device(list[0]);
	domain = device != NULL ? ibv_alloc_pd(device) : NULL;
	return domain != NULL ? 0 : errno;
}

static void do_region(void)
{
	struct region *r = &regions[number(1) % MAX_IDS];

	r->bytes = number(2);
	r->at = aligned_alloc(4096, (r->bytes + 4095) & ~UINT64_C(4095));
	if (r->at == NULL)
		return failed("memory", ENOMEM);
	memset(r->at, 0, r->bytes);
	r->mr = ibv_reg_mr(domain, r->at, r->bytes,
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
			IBV_ACCESS_REMOTE_ATOMIC);
	if (r->mr == NULL)
		return failed("ibv_reg_mr", errno);
	answer("ok key=0x%x va=0x%llx", r->mr->rkey, (unsigned long long)(uintptr_t)r->at);
}

static void do_pair(void)
{
	struct pair *p = &pairs[number(1) % MAX_IDS];
	struct ibv_qp_init_attr init = { .cap = { 256, 256, 1, 1, 0 }, .sq_sig_all = 1 };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
				   IBV_ACCESS_REMOTE_ATOMIC };
	int error;

	p->cq = ibv_create_cq(device, 512, NULL, NULL, 0);
	init.send_cq = init.recv_cq = p->cq;
	init.qp_type = n_words > 2 && strcmp(words[2], "uc") == 0 ? IBV_QPT_UC : IBV_QPT_RC;
	p->qp = p->cq != NULL ? ibv_create_qp(domain, &init) : NULL;
	if (p->qp == NULL)
		return failed("ibv_create_qp", errno);
	error = ibv_modify_qp(
		p->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	if (error != 0)
		return failed("to init", error);
	answer("ok qpn=0x%x", p->qp->qp_num);
}

static enum ibv_mtu mtu_code(uint64_t mtu)
{
	return mtu <= 256    ? IBV_MTU_256
	       : mtu <= 512  ? IBV_MTU_512
	       : mtu <= 1024 ? IBV_MTU_1024
	       : mtu <= 2048 ? IBV_MTU_2048
			     : IBV_MTU_4096;
}

static int gid_from(const char *address, union ibv_gid *ret)
{
	memset(ret, 0, sizeof(*ret));
	if (strchr(address, ':') != NULL)
		return inet_pton(AF_INET6, address, ret->raw) == 1;
	ret->raw[10] = ret->raw[11] = 0xff;
	return inet_pton(AF_INET, address, ret->raw + 12) == 1;
}

/* The place of an address of ours in the device's table, or -1. */
static int gid_index(const union ibv_gid *gid)
{
	struct ibv_gid_entry entry;

	for (uint32_t i = 0; i < 64; i++) {
		if (ibv_query_gid_ex(device, 1, i, &entry, 0) == 0 &&
			entry.gid_type == IBV_GID_TYPE_ROCE_V2 &&
			memcmp(&entry.gid, gid, sizeof(*gid)) == 0)
			return (int)i;
	}
	return -1;
}

static void do_connect(void)
{
	union ibv_gid own;
	struct pair *p = pair_of(1);
	struct ibv_qp_attr rtr = {
		.qp_state = IBV_QPS_RTR, .max_dest_rd_atomic = 4, .min_rnr_timer = 12
	};
	struct ibv_qp_attr rts = { .qp_state = IBV_QPS_RTS,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 4 };
	int rtr_mask = IBV_QP_STATE | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_AV;
	int rts_mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
	int error, index;

	if (p == NULL || n_words < 8 || !gid_from(words[2], &own) ||
		!gid_from(words[3], &rtr.ah_attr.grh.dgid))
		return failed("connect", EINVAL);
	index = gid_index(&own);
	if (index < 0)
		return failed("own address", ENOENT);
	rtr.ah_attr.is_global = 1;
	rtr.ah_attr.port_num = 1;
	rtr.ah_attr.grh.sgid_index = (uint8_t)index;
	rtr.ah_attr.grh.hop_limit = 64;
	rtr.dest_qp_num = (uint32_t)number(4);
	rtr.rq_psn = (uint32_t)number(5);
	rts.sq_psn = (uint32_t)number(6);
	rtr.path_mtu = mtu_code(number(7));
	if (p->qp->qp_type == IBV_QPT_RC) {
		rtr_mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
		rts_mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			    IBV_QP_MAX_QP_RD_ATOMIC;
	}
	error = ibv_modify_qp(p->qp, &rtr, rtr_mask);
	if (error != 0)
		return failed("to rtr", error);
	error = ibv_modify_qp(p->qp, &rts, rts_mask);
	if (error != 0)
		return failed("to rts", error);
	answer("ok");
}

static void do_state(void)
{
	static const char *const names[] = { "reset", "init", "rtr", "rts", "sqd", "sqe", "error" };
	struct pair *p = pair_of(1);
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	if (p == NULL || ibv_query_qp(p->qp, &attr, IBV_QP_STATE | IBV_QP_RQ_PSN | IBV_QP_SQ_PSN,
				 &init) != 0)
		return failed("state", EINVAL);
	answer("ok state=%s expect=0x%x first=0x%x", names[attr.qp_state % 7], attr.rq_psn,
		attr.sq_psn);
}

static void do_receive(void)
{
	struct pair *p = pair_of(1);
	struct ibv_sge sge;
	struct ibv_recv_wr wr = { .sg_list = &sge }, *bad;
	int error = p != NULL ? piece(2, number(4), &sge) : EINVAL;

	wr.num_sge = error == 0 && sge.length > 0;
	if (error == 0)
		error = ibv_post_recv(p->qp, &wr, &bad);
	if (error != 0)
		return failed("receive", error);
	answer("ok");
}

static void post(struct ibv_send_wr *wr, struct ibv_sge *sge, int error)
{
	struct pair *p = pair_of(1);
	struct ibv_send_wr *bad;

	wr->sg_list = sge;
	wr->num_sge = 1;
	if (error == 0)
		error = p != NULL ? ibv_post_send(p->qp, wr, &bad) : EINVAL;
	if (error != 0)
		return failed(words[0], error);
	answer("ok");
}

/* write, read, send */
static void do_message(enum ibv_wr_opcode plain, enum ibv_wr_opcode immediate)
{
	struct ibv_send_wr wr = { .opcode = n_words > 7 ? immediate : plain };
	struct ibv_sge sge = { 0 };
	int error = piece(2, number(4), &sge);

	wr.imm_data = htonl((uint32_t)number(7));
	wr.wr.rdma.remote_addr = number(5);
	wr.wr.rdma.rkey = (uint32_t)number(6);
	post(&wr, &sge, error);
}

static void do_atomic(enum ibv_wr_opcode opcode)
{
	struct ibv_send_wr wr = { .opcode = opcode };
	struct ibv_sge sge = { 0 };
	int error = piece(2, 8, &sge);

	wr.wr.atomic.remote_addr = number(4);
	wr.wr.atomic.rkey = (uint32_t)number(5);
	wr.wr.atomic.compare_add = number(6);
	wr.wr.atomic.swap = number(7);
	post(&wr, &sge, error);
}

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void do_done(void)
{
	struct pair *p = pair_of(1);
	uint64_t until = now_ms() + number(2);
	unsigned int n = 0;
	struct ibv_wc wc;

	if (p == NULL)
		return failed("done", EINVAL);
	for (;;) {
		int got = ibv_poll_cq(p->cq, 1, &wc);

		if (got < 0)
			return failed("ibv_poll_cq", EIO);
		if (got == 0 && (n > 0 || now_ms() >= until))
			break;
		if (got == 0) {
			nanosleep(&(struct timespec){ 0, 500000 }, NULL);
			continue;
		}
		n++;
		printf("done status=%d opcode=%d bytes=%u immediate=0x%x\n", wc.status,
			wc.status == 0 ? (int)wc.opcode : -1, wc.status == 0 ? wc.byte_len : 0,
			wc.status == 0 && (wc.wc_flags & IBV_WC_WITH_IMM) ? ntohl(wc.imm_data) : 0);
	}
	answer("ok %u", n);
}

static void do_put(void)
{
	struct region *r = region_of(1);
	size_t at = number(2), n = n_words > 3 ? strlen(words[3]) / 2 : 0;

	if (r == NULL || at > r->bytes || n > r->bytes - at)
		return failed("put", EINVAL);
	for (size_t i = 0; i < n; i++)
		sscanf(words[3] + 2 * i, "%2hhx", r->at + at + i);
	answer("ok");
}

static void do_get(void)
{
	struct region *r = region_of(1);
	size_t at = number(2), n = number(3);

	if (r == NULL || at > r->bytes || n > r->bytes - at)
		return failed("get", EINVAL);
	printf("ok ");
	for (size_t i = 0; i < n; i++)
		printf("%02x", ((volatile uint8_t *)r->at)[at + i]);
	answer("");
}

/* ---- the connection manager ---- */

struct told {
	uint64_t va;
	uint32_t key, bytes;
};

/* The next event, which must be `want`; its private data to ret when there are some. */
static int await_event(struct rdma_event_channel *channel, enum rdma_cm_event_type want,
	struct told *ret, struct rdma_cm_id **ret_id)
{
	struct pollfd ready = { channel->fd, POLLIN, 0 };
	struct rdma_cm_event *event;
	int good;

	if (poll(&ready, 1, CM_MS) <= 0)
		return ETIMEDOUT;
	if (rdma_get_cm_event(channel, &event) != 0)
		return errno;
	printf("cm %s status=%d\n", rdma_event_str(event->event), event->status);
	good = event->event == want;
	if (good && ret != NULL && event->param.conn.private_data_len >= sizeof(*ret))
		memcpy(ret, event->param.conn.private_data, sizeof(*ret));
	if (good && ret_id != NULL)
		*ret_id = event->id;
	rdma_ack_cm_event(event);
	return good ? 0 : EPROTO;
}

static int make_pair(struct rdma_cm_id *id, struct region *r, struct ibv_mr **ret_mr)
{
	struct ibv_qp_init_attr init = {
		.cap = { 8, 8, 1, 1, 0 }, .qp_type = IBV_QPT_RC, .sq_sig_all = 1
	};
	struct ibv_pd *pd = ibv_alloc_pd(id->verbs);

	if (pd == NULL || rdma_create_qp(id, pd, &init) != 0)
		return errno;
	*ret_mr = ibv_reg_mr(pd, r->at, r->bytes,
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
			IBV_ACCESS_REMOTE_ATOMIC);
	return *ret_mr != NULL ? 0 : errno;
}

static int cm_write(struct rdma_cm_id *id, const struct region *r, const struct ibv_mr *mr,
	const struct told *peer)
{
	struct ibv_sge sge = { (uintptr_t)r->at, 64, mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE },
			   *bad;
	uint64_t until = now_ms() + CM_MS;
	struct ibv_wc wc;
	int error, got = 0;

	wr.wr.rdma.remote_addr = be64toh(peer->va);
	wr.wr.rdma.rkey = ntohl(peer->key);
	error = ibv_post_send(id->qp, &wr, &bad);
	while (error == 0 && (got = ibv_poll_cq(id->send_cq, 1, &wc)) == 0 && now_ms() < until)
		;
	if (error != 0 || got <= 0)
		return error != 0 ? error : ETIMEDOUT;
	printf("cm written status=%d\n", wc.status);
	return wc.status == 0 ? 0 : EIO;
}

/* One side of a connection, from request to farewell. */
static int cm_side(struct rdma_event_channel *channel, const char *address, uint16_t port,
	struct region *r, unsigned int idle_s)
{
	struct rdma_conn_param param = { .responder_resources = 4,
		.initiator_depth = 4,
		.retry_count = 7,
		.rnr_retry_count = 7 };
	struct sockaddr_in to4 = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct sockaddr_in6 to6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	const bool v4 = address != NULL && strchr(address, ':') == NULL;
	struct sockaddr *to = v4 ? (struct sockaddr *)&to4 : (struct sockaddr *)&to6;
	struct told mine, peer = { 0 };
	struct rdma_cm_id *id, *listener;
	struct ibv_mr *mr;
	int error;

	if (rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP) != 0)
		return errno;
	id = listener;
	if (address != NULL) {
		if (v4)
			inet_pton(AF_INET, address, &to4.sin_addr);
		else
			inet_pton(AF_INET6, address, &to6.sin6_addr);
		if (rdma_resolve_addr(id, NULL, to, CM_MS) != 0)
			return errno;
		error = await_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED, NULL, NULL);
		if (error == 0 && rdma_resolve_route(id, CM_MS) != 0)
			error = errno;
		if (error == 0)
			error = await_event(channel, RDMA_CM_EVENT_ROUTE_RESOLVED, NULL, NULL);
	} else {
		if (rdma_bind_addr(listener, to) != 0 || rdma_listen(listener, 1) != 0)
			return errno;
		printf("cm listening\n");
		fflush(stdout);
		error = await_event(channel, RDMA_CM_EVENT_CONNECT_REQUEST, &peer, &id);
	}
	if (error == 0)
		error = make_pair(id, r, &mr);
	if (error != 0)
		return error;
	mine = (struct told){ htobe64((uintptr_t)r->at), htonl(mr->rkey),
		htonl((uint32_t)r->bytes) };
	param.private_data = &mine;
	param.private_data_len = sizeof(mine);
	if ((address != NULL ? rdma_connect(id, &param) : rdma_accept(id, &param)) != 0)
		return errno;
	error = await_event(
		channel, RDMA_CM_EVENT_ESTABLISHED, address != NULL ? &peer : NULL, NULL);
	if (error == 0 && address != NULL) {
		error = cm_write(id, r, mr, &peer);
		/* The kernel's connection manager goes on without this program. */
		sleep(idle_s);
		rdma_disconnect(id);
	}
	if (error == 0)
		error = await_event(channel, RDMA_CM_EVENT_DISCONNECTED, NULL, NULL);
	if (error == 0 && address == NULL)
		rdma_disconnect(id);
	rdma_destroy_qp(id);
	ibv_dereg_mr(mr);
	if (id != listener)
		rdma_destroy_id(id);
	rdma_destroy_id(listener);
	return error;
}

static void do_cm(const char *address, int port_word, int region_word, unsigned int idle_s)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct region *r = region_of(region_word);
	int error;

	if (channel == NULL || r == NULL)
		return failed("cm", EINVAL);
	error = cm_side(channel, address, (uint16_t)number(port_word), r, idle_s);
	rdma_destroy_event_channel(channel);
	if (error != 0)
		return failed("cm", error);
	answer("ok");
}

static void run(char *line)
{
	n_words = 0;
	for (char *w = strtok(line, " \t\r\n"); w != NULL && n_words < MAX_WORDS;
		w = strtok(NULL, " \t\r\n"))
		words[n_words++] = w;
	if (n_words == 0)
		answer("ok");
	else if (strcmp(words[0], "region") == 0)
		do_region();
	else if (strcmp(words[0], "pair") == 0)
		do_pair();
	else if (strcmp(words[0], "connect") == 0)
		do_connect();
	else if (strcmp(words[0], "state") == 0)
		do_state();
	else if (strcmp(words[0], "receive") == 0)
		do_receive();
	else if (strcmp(words[0], "write") == 0)
		do_message(IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM);
	else if (strcmp(words[0], "read") == 0)
		do_message(IBV_WR_RDMA_READ, IBV_WR_RDMA_READ);
	else if (strcmp(words[0], "send") == 0)
		do_message(IBV_WR_SEND, IBV_WR_SEND_WITH_IMM);
	else if (strcmp(words[0], "add") == 0)
		do_atomic(IBV_WR_ATOMIC_FETCH_AND_ADD);
	else if (strcmp(words[0], "swap") == 0)
		do_atomic(IBV_WR_ATOMIC_CMP_AND_SWP);
	else if (strcmp(words[0], "done") == 0)
		do_done();
	else if (strcmp(words[0], "put") == 0)
		do_put();
	else if (strcmp(words[0], "get") == 0)
		do_get();
	else if (strcmp(words[0], "listen") == 0)
		do_cm(NULL, 1, 2, 0);
	else if (strcmp(words[0], "call") == 0 && n_words > 1)
		do_cm(words[1], 2, 3, n_words > 4 ? (unsigned int)number(4) : 0);
	else
		failed(words[0], EINVAL);
}

int main(void)
{
	static char line[8192];
	int error = open_device();

	if (error != 0)
		failed("no device", error);
	else
		answer("ok ready");
	while (fgets(line, sizeof(line), stdin) != NULL && strncmp(line, "quit", 4) != 0)
		run(line);
	return 0;
}
