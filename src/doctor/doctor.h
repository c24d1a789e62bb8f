/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The checks of pathline doctor: what this machine offers, and for what is missing the command that
 * gives it. They look only, change nothing and need no privilege.
 */
#pragma once

enum pl_doctor_status { PL_DOCTOR_OK, PL_DOCTOR_WARN, PL_DOCTOR_FAIL, PL_DOCTOR_MAX };

struct pl_finding {
	enum pl_doctor_status status;
	char found[256]; /* in words */
	char fix[256];   /* a command, or what to do; empty when nothing is to be done */
};

extern const char *const pl_doctor_status_names[PL_DOCTOR_MAX];

struct pl_doctor_check {
	const char *name;
	void (*run)(struct pl_finding *f); /* *f is zero before */
};

extern const struct pl_doctor_check pl_doctor_checks[];
extern const unsigned int pl_doctor_n_checks;
