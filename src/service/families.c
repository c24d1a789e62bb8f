/* SPDX-License-Identifier: BSD-2-Clause */
/* Lists the metric families of every service. */
#include "service/families.h"

#include "chain/memory_server.h"
#include "chain/translator.h"
#include "kafka/kafka.h"
#include "marks/between.h"
#include "marks/marks.h"
#include "marks/to.h"
#include "pipeline/metrics.h"
#include "runtime/pages.h"
#include "runtime/region_metrics.h"
#include "service/int_host.h"
#include "service/kafka_source.h"
#include "service/mark_host.h"
#include "service/query_member.h"
#include "service/standing.h"
#include "service/switch.h"
#include "service/tap.h"
#include "service/taps.h"

static const struct pl_service_ops *const services[] = {
	&pl_translate_service,
	&pl_memory_service,
	&pl_taps_service,
	&pl_int_host_ops,
	&pl_mark_host_ops,
	&pl_mark_to_ops,
	&pl_mark_between_ops,
	&pl_marks_service,
	&pl_standing_service,
	&pl_switch_service,
#if PL_HAVE_KAFKA
	&pl_kafka_source_service,
	&pl_query_member_service,
#endif
};

int pl_families_describe(struct pl_exposition *page)
{
	const struct pl_region_list none = { .n = 0 };
	const struct pl_account a = { .page = page };
	int r = pl_metrics_describe(page);

	if (r < 0)
		return r;
	pl_pages_describe(page);
	pl_regions_metrics(page, &none);
	pl_readiness_page(NULL, page);
	for (size_t i = 0; i < sizeof(services) / sizeof(services[0]); i++)
		services[i]->counters(NULL, &a);
	return 0;
}
