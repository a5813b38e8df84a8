/* SPDX-License-Identifier: MIT
 *
 * The table itself: every line of settings.def fits everything that is made from it.
 */
#include "config/setting.h"

#include "config/value.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static void every_name_is_unique_in_its_section_and_in_lower_case(void **state)
{
    (void)state;
    for (size_t i = 0; i < CONFIG_SETTINGS; i++) {
        const char *name = config_setting_table[i].name;
        assert_int_equal(strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-"), strlen(name));
        assert_ptr_equal(config_setting_find(config_setting_table[i].section, span_text(name)),
                         &config_setting_table[i]);
    }
    assert_ptr_equal(config_setting_find_anywhere(SPAN("header")),
                     &config_setting_table[SETTING_headers]);
    assert_ptr_equal(config_setting_find_anywhere(SPAN("rewrite")),
                     &config_setting_table[SETTING_rewrite]);
    assert_null(config_setting_find(CONFIG_SERVER, SPAN("root")));
    assert_null(config_setting_find_anywhere(SPAN("")));
    assert_null(config_setting_find_anywhere(SPAN("Listen")));
}

static void every_setting_accepts_its_default(void **state)
{
    (void)state;
    struct config_arena arena = { 0 };
    for (size_t i = 0; i < CONFIG_SETTINGS; i++) {
        const struct config_setting *setting = &config_setting_table[i];
        const char *text = config_setting_default(setting), *canonical;
        struct config_reason reason;
        if (text && !config_setting_has_commas(setting->kind) &&
            !config_value_check(setting, span_text(text), SPAN(""), &arena, &canonical, &reason))
            fail_msg("%s: the default `%s` is refused: %s", setting->name, text, reason.text);
    }
    config_arena_done(&arena);
}

static void every_sentence_is_short_and_has_no_full_stop(void **state)
{
    (void)state;
    for (size_t i = 0; i < CONFIG_SETTINGS; i++) {
        size_t len = strlen(config_setting_table[i].sentence);
        assert_in_range(len, 10, 160);
        assert_true(config_setting_table[i].sentence[len - 1] != '.');
    }
}

static void the_variable_is_the_name_in_capitals(void **state)
{
    (void)state;
    char variable[CONFIG_VARIABLE_MAX];
    config_setting_variable(&config_setting_table[SETTING_cache_file_max_bytes], variable);
    assert_string_equal(variable, "WEIR_CACHE_FILE_MAX");
    config_setting_variable(&config_setting_table[SETTING_model], variable);
    assert_string_equal(variable, "WEIR_MODEL");
}

static void the_choices_of_model_are_those_of_models_def(void **state)
{
    (void)state;
    const char *const *models = config_setting_choices(CONFIG_MODEL);
    assert_string_equal(models[0], "auto");
    size_t count = 0;
#define MODEL(name, ...) \
    count++; \
    assert_string_equal(models[count], #name);
#include "model/models.def"
#undef MODEL
    assert_null(models[count + 1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_name_is_unique_in_its_section_and_in_lower_case),
        cmocka_unit_test(every_setting_accepts_its_default),
        cmocka_unit_test(every_sentence_is_short_and_has_no_full_stop),
        cmocka_unit_test(the_variable_is_the_name_in_capitals),
        cmocka_unit_test(the_choices_of_model_are_those_of_models_def),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
