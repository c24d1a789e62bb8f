/* SPDX-License-Identifier: BSD-2-Clause */
/* Metrics of the process itself, which every page has. */
#pragma once

#include "export/exposition.h"

/* process_*: of this process, as every exporter of Prometheus has them. */
void pl_exposition_process(struct pl_exposition *page);
