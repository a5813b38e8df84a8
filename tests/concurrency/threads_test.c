/* SPDX-License-Identifier: MIT
 *
 * One function runs on several threads, and all are joined, also after an error. Each thread waits
 * for `stop`. If `stop` is not called, the test ends at its time limit.
 */
#include "model/threads.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

enum { THREADS = 4, NONE = -1 };

struct scene {
    int failing; /* the thread that ends with an error once all run, or NONE */
    int outcome;
    _Atomic unsigned begun;
    _Atomic unsigned ended;
    _Atomic unsigned stops;
    pthread_mutex_t lock;
    pthread_cond_t changed;
};

static void begin(struct scene *scene, int failing, int outcome)
{
    *scene = (struct scene){ .failing = failing, .outcome = outcome };
    pthread_mutex_init(&scene->lock, NULL);
    pthread_cond_init(&scene->changed, NULL);
}

static void end(struct scene *scene)
{
    pthread_mutex_destroy(&scene->lock);
    pthread_cond_destroy(&scene->changed);
}

static int wait_for_stop(void *context, unsigned index)
{
    struct scene *scene = context;
    pthread_mutex_lock(&scene->lock);
    scene->begun++;
    pthread_cond_broadcast(&scene->changed);
    bool fails = (int)index == scene->failing;
    while (fails ? scene->begun < THREADS : scene->stops == 0)
        pthread_cond_wait(&scene->changed, &scene->lock);
    scene->ended++;
    pthread_mutex_unlock(&scene->lock);
    return fails ? scene->outcome : 0;
}

static void stop(void *context)
{
    struct scene *scene = context;
    pthread_mutex_lock(&scene->lock);
    scene->stops++;
    pthread_cond_broadcast(&scene->changed);
    pthread_mutex_unlock(&scene->lock);
}

static int serve_threads(struct scene *scene)
{
    struct model_threads threads = { THREADS, wait_for_stop, stop, scene };
    return model_threads_serve(&threads);
}

static void *stop_later(void *context)
{
    struct scene *scene = context;
    pthread_mutex_lock(&scene->lock);
    while (scene->begun < THREADS)
        pthread_cond_wait(&scene->changed, &scene->lock);
    pthread_mutex_unlock(&scene->lock);
    stop(scene);
    return NULL;
}

static void every_thread_runs_once_and_is_joined(void **state)
{
    (void)state;
    struct scene scene;
    begin(&scene, NONE, 0);
    pthread_t stopper;
    assert_int_equal(pthread_create(&stopper, NULL, stop_later, &scene), 0);
    assert_int_equal(serve_threads(&scene), 0);
    assert_int_equal(scene.ended, THREADS);
    assert_int_equal(scene.stops, 1);
    pthread_join(stopper, NULL);
    end(&scene);
}

static void a_thread_that_fails_stops_the_others(void **state)
{
    (void)state;
    for (int failing = 0; failing < THREADS; failing++) {
        struct scene scene;
        begin(&scene, failing, -EIO - failing);
        assert_int_equal(serve_threads(&scene), -EIO - failing);
        assert_int_equal(scene.ended, THREADS);
        assert_int_equal(scene.stops, 1);
        end(&scene);
    }
}

/* Sets the stack size of later threads. With SIZE_MAX / 4 no thread can start. */
static size_t set_stack_size(size_t bytes)
{
    pthread_attr_t attributes;
    size_t before = 0;
    assert_int_equal(pthread_getattr_default_np(&attributes), 0);
    assert_int_equal(pthread_attr_getstacksize(&attributes, &before), 0);
    assert_int_equal(pthread_attr_setstacksize(&attributes, bytes), 0);
    assert_int_equal(pthread_setattr_default_np(&attributes), 0);
    pthread_attr_destroy(&attributes);
    return before;
}

static void a_thread_that_cannot_start_stops_the_others(void **state)
{
    (void)state;
    struct scene scene;
    begin(&scene, NONE, 0);
    size_t before = set_stack_size(SIZE_MAX / 4);
    int rc = serve_threads(&scene);
    set_stack_size(before);
    assert_int_equal(rc, -EAGAIN);
    assert_int_equal(scene.stops, 1);
    assert_int_equal(scene.ended, 0);
    end(&scene);
}

int main(void)
{
    alarm(60);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_thread_runs_once_and_is_joined),
        cmocka_unit_test(a_thread_that_fails_stops_the_others),
        cmocka_unit_test(a_thread_that_cannot_start_stops_the_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
