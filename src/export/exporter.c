/* SPDX-License-Identifier: BSD-2-Clause */
/* Causes for which outputs drop records: their names, and which an error is. */
#include "export/exporter.h"

#include <assert.h>
#include <errno.h>

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

enum pl_export_drop pl_export_drop_of(int error)
{
	switch (error) {
	case -EXFULL:
		return PL_EXPORT_SPOOL_FULL;
	case -ENOSPC:
	case -EDQUOT:
	case -EFBIG:
		return PL_EXPORT_NO_SPACE;
	default:
		return PL_EXPORT_IO;
	}
}
