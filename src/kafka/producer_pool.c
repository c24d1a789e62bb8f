/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes batch buffers. librdkafka refers to them, so they never move: more of them are a piece of
 * memory of their own. */
#include "kafka/producer_pool.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

struct pl_kafka_pool {
	struct pl_kafka_pool *next;
	uint8_t *records;
	size_t bytes;
	struct pl_kafka_batch batches[];
};

static int add(struct pl_kafka_producer *p, uint32_t n, struct pl_diag *diag)
{
	const size_t each = p->batch_bytes;
	struct pl_kafka_pool *pool = calloc(1, sizeof(*pool) + n * sizeof(pool->batches[0]));
	void *records =
		mmap(NULL, each * n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (pool == NULL || records == MAP_FAILED) {
		free(pool);
		if (records != MAP_FAILED)
			munmap(records, each * n);
		return pl_diag_fail(
			diag, -ENOMEM, "out of memory: %u batch buffers of %zu bytes", n, each);
	}
	(void)madvise(records, each * n, MADV_HUGEPAGE);
	pool->records = records;
	pool->bytes = each * n;
	pool->next = p->pool;
	p->pool = pool;
	p->pool_bytes += pool->bytes;
	p->n_buffers += n;
	for (uint32_t i = 0; i < n; i++) {
		pool->batches[i].records = pool->records + i * each;
		pool->batches[i].side = p->side;
		pl_kafka_batch_free(p, &pool->batches[i]);
	}
	return 0;
}

/* For partitions that became known later there are as many buffers as fit. */
static uint32_t cut(const struct pl_kafka_producer *p, uint32_t n, struct pl_diag *diag)
{
	const size_t most = PL_KAFKA_POOL_MAX / p->batch_bytes;

	if (n <= most)
		return n;
	pl_diag_set(diag, "%u partitions share %zu batch buffers of %zu bytes, which are %zu MiB",
		p->n_partitions, most, p->batch_bytes, PL_KAFKA_POOL_MAX >> 20);
	return (uint32_t)most;
}

int pl_kafka_producer_pool(struct pl_kafka_producer *p, struct pl_diag *diag)
{
	uint32_t n = p->buffers != 0 ? p->buffers : PL_KAFKA_BUFFERS_DEFAULT;

	if (p->buffers == 0 && n < 2 * p->n_partitions)
		n = 2 * p->n_partitions;
	if (p->n_buffers > 0)
		n = cut(p, n, diag);
	if (n <= p->n_buffers)
		return 0;
	if (p->pool_bytes + p->batch_bytes * (n - p->n_buffers) > PL_KAFKA_POOL_MAX)
		return pl_diag_fail(diag, -EINVAL,
			"%u batch buffers of %zu bytes are more than %zu MiB: take fewer, or fewer "
			"records= per message",
			n, p->batch_bytes, PL_KAFKA_POOL_MAX >> 20);
	return add(p, n - p->n_buffers, diag);
}

void pl_kafka_producer_pool_done(struct pl_kafka_producer *p)
{
	while (p->pool != NULL) {
		struct pl_kafka_pool *pool = p->pool;

		p->pool = pool->next;
		munmap(pool->records, pool->bytes);
		free(pool);
	}
}
