/* SPDX-License-Identifier: BSD-2-Clause */
/* Computes an upper bound of the memory that a configuration needs. */
#include "decode/advise.h"
#include "export/queue.h"
#include "netio/port.h"
#include "pipeline/config.h"
#include "pipeline/kernel_source.h"
#include "pipeline/kind.h"
#include "pipeline/pipeline.h"

/* Memory of a UDP port (netio/udp.c): its default socket buffer, and a batch of the largest
 * datagrams. */
#define PORT_RCVBUF_BYTES    (UINT64_C(16) << 20)
#define PORT_BATCH_BYTES     (PL_BATCH_MAX * UINT64_C(66048))
/* Memory of an output's thread: one batch of records. */
#define OUTPUT_SCRATCH_BYTES (UINT64_C(256) << 10)

uint64_t pl_pipeline_memory(const struct pl_config *config)
{
	const struct pl_config_source *s = config->sources.items;
	const struct pl_config_output *o = config->outputs.items;
	struct pl_aggregate_options aggregate;
	struct pl_decode_options decode;
	struct pl_detect_options detect;
	uint64_t per_worker, sum;

	pl_config_decode(config, &decode);
	pl_config_aggregate(config, &aggregate);
	pl_config_detect(config, &detect);
	per_worker = pl_decode_memory(&decode) + pl_advise_memory(&decode) +
		     2 * pl_aggregate_memory(&aggregate) + pl_detect_memory(&detect) +
		     pl_worker_memory((uint32_t)config->decode.max_exporters);
	for (size_t i = 0; i < config->outputs.n; i++)
		per_worker += pl_export_queue_memory((uint32_t)o[i].queue_records);
	/* One more aggregate, for readers. */
	sum = pl_config_workers(config) * per_worker + pl_aggregate_memory(&aggregate);
	for (size_t i = 0; i < config->sources.n; i++) {
		uint64_t rcvbuf = s[i].rcvbuf_bytes > 0 ? s[i].rcvbuf_bytes : PORT_RCVBUF_BYTES;

		if (pl_config_where(config, &s[i]) != PL_DETECT_USER)
			sum += pl_kernel_source_memory(config, pl_config_sockets(&s[i]),
				pl_config_where(config, &s[i]) == PL_DETECT_BOTH);
		/* The kernel counts its own headers in the buffer as well: twice the size
		 * requested. */
		sum += pl_config_sockets(&s[i]) * (2 * rcvbuf + PORT_BATCH_BYTES);
	}
	for (size_t i = 0; i < config->outputs.n; i++) {
		sum += pl_output_kinds[o[i].type]->memory(&o[i]) + OUTPUT_SCRATCH_BYTES;
		/* Aggregates of the last interval and of now. */
		if (o[i].interval_ns > 0)
			sum += 2 * pl_aggregate_memory(&aggregate);
	}
	return sum;
}
