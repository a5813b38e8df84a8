/* SPDX-License-Identifier: MIT
 *
 * The JSON of a run from any source: refused with one line, or read and then printed.
 */
#include "base/check.h"
#include "load/read.h"
#include "load/report.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void show(const struct load_run *run)
{
    static const struct load_slos none;
    struct load_report report;
    const char *path;
    FILE *out = fopen("/dev/null", "we");
    CHECK(out && load_report_init(&report, run, &none) == 0);
    for (unsigned form = LOAD_FORM_TEXT; form <= LOAD_FORM_CSV; form++) {
        const struct load_report_output how = { (enum load_form)form, true, "-", "-" };
        CHECK(load_report_print(&report, &how, out, &path) == 0);
    }
    load_report_done(&report);
    (void)fclose(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct load_read read;
    char why[LOAD_WHY_MAX] = "";
    if (load_read_text(span_of((const char *)data, size), &read, why) != 0) {
        CHECK(strlen(why) > 0 && !strchr(why, '\n'));
        return 0;
    }
    show(&read.run);
    load_read_done(&read);
    return 0;
}
