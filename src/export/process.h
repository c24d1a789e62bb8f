/* SPDX-License-Identifier: BSD-2-Clause */
/* Metrics of this process, for every metrics page. */
#pragma once

#include "export/exposition.h"

/* Writes process_*, as exporters of Prometheus do. */
void pl_exposition_process(struct pl_exposition *page);
