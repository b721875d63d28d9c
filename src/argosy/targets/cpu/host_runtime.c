/* The host runtime: runs the steps of a Plan. One copy is in every shared object, after host_abi.h. */

ARGOSY_EXPORT const int64_t argosy_host_abi = ARGOSY_HOST_ABI;

ARGOSY_EXPORT void argosy_run(struct argosy_run *run) {
    char *scratch = run->scratch + 64;
    int64_t *report = (int64_t *)run->scratch;
    run->fault = report[0] = ARGOSY_OK;
    for (int64_t index = 0; index < run->count; ++index) {
        const struct argosy_step *step = &run->steps[index];
        for (int64_t chunk = 0; chunk < step->chunks; ++chunk)
            step->kernel(step->params, chunk, step->chunks, scratch);
        if (report[0] != ARGOSY_OK) {
            run->fault = report[0];
            run->value = report[1];
            run->step = index;
            return;
        }
    }
}
