/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of the causes for which outputs drop records. */
#include "export/exporter.h"

#include <assert.h>

const char *pl_export_drop_name(enum pl_export_drop cause)
{
	static const char *const names[PL_EXPORT_DROP_MAX] = {
		[PL_EXPORT_QUEUE_FULL] = "queue_full",
		[PL_EXPORT_NO_SPACE] = "no_space",
		[PL_EXPORT_IO] = "io",
		[PL_EXPORT_FORMAT] = "format",
		[PL_EXPORT_REJECTED] = "rejected",
		[PL_EXPORT_CLOSED] = "closed",
		[PL_EXPORT_MEMORY] = "memory_full",
		[PL_EXPORT_SPOOL_FULL] = "spool_full",
		[PL_EXPORT_DAMAGED] = "damaged",
		[PL_EXPORT_TIME] = "time",
		[PL_EXPORT_EMPTY] = "empty",
	};

	assert(cause < PL_EXPORT_DROP_MAX);
	return names[cause];
}
