/* See core.h. The header's prototypes are those that the compiler holds these against. */
#include <hip/hip_runtime_api.h>
#define REACHES_HOST 0
#include "core.h"
#define DO(name, context, capture, work) do { int code = enter(name, context, capture); return (hipError_t)leave(code ? code : (int)(work)); } while (0)
#define H(p) ((const void *)(p))

EXPORT const char *hipGetErrorString(hipError_t code) { return code == 2 ? "out of memory" : code == 1 ? "invalid argument" : "fake error"; }
EXPORT hipError_t hipInit(unsigned flags) { DO("init", 0, 1, flags); }
EXPORT hipError_t hipDriverGetVersion(int *out) { *out = version ? version : 70125424; return 0; }
EXPORT hipError_t hipGetDeviceCount(int *out) { *out = device_count; return 0; }
EXPORT hipError_t hipDeviceGet(hipDevice_t *out, int index) { *out = index; return 0; }
EXPORT hipError_t hipDeviceGetName(char *out, int size, hipDevice_t device) { snprintf(out, size, "%s", devices[device].name); return 0; }
EXPORT hipError_t hipDeviceTotalMem(size_t *out, hipDevice_t device) { (void)device; *out = limit; return 0; }
EXPORT hipError_t hipMemGetInfo(size_t *left, size_t *total) { *left = limit - used, *total = limit; return 0; }
EXPORT hipError_t hipDeviceGetPCIBusId(char *out, int size, int device) { snprintf(out, size, "%s", devices[device].pci); return 0; }
EXPORT hipError_t hipDeviceGetAttribute(int *out, hipDeviceAttribute_t what, int device) {
    switch (what) {
    case hipDeviceAttributeMultiprocessorCount: *out = devices[device].units; return 0;
    case hipDeviceAttributeWarpSize: *out = devices[device].wave; return 0;
    case hipDeviceAttributeComputeCapabilityMajor: *out = 9; return 0;
    case hipDeviceAttributeComputeCapabilityMinor: *out = 4; return 0;
    default: return (hipError_t)wrong("the attribute %d is asked for", what);
    }
}
EXPORT hipError_t hipGetDevicePropertiesR0600(hipDeviceProp_tR0600 *out, int device) {
    memset(out, 0, sizeof *out);
    snprintf(out->gcnArchName, sizeof out->gcnArchName, "%s:sramecc+:xnack-", devices[device].arch);
    return 0;
}
EXPORT hipError_t hipDevicePrimaryCtxRetain(hipCtx_t *out, hipDevice_t device) { *out = (hipCtx_t)&contexts[device]; return 0; }
EXPORT hipError_t hipCtxGetCurrent(hipCtx_t *out) { *out = (hipCtx_t)(current < 0 ? NULL : &contexts[current]); return 0; }
EXPORT hipError_t hipCtxSetCurrent(hipCtx_t context) { current = context ? (int)((int *)context - contexts) : -1; return 0; }
EXPORT hipError_t hipMalloc(void **at, size_t size) { DO("allocate", 1, 0, core_allocate(MEMORY, at, size)); }
EXPORT hipError_t hipFree(void *at) { DO("free", 1, 0, core_free(MEMORY, at)); }
EXPORT hipError_t hipHostMalloc(void **at, size_t size, unsigned flags) { DO("allocate_host", 1, 0, flags ? INVALID : core_allocate(HOST, at, size)); }
EXPORT hipError_t hipHostFree(void *at) { DO("free_host", 1, 0, core_free(HOST, at)); }
EXPORT hipError_t hipMemcpyHtoDAsync(hipDeviceptr_t to, const void *from, size_t size, hipStream_t stream) {
    DO("upload", 1, 1, enqueue(H(stream), (Work){.what = COPY, .to = to, .from = (char *)from, .from_host = 1, .size = size}));
}
EXPORT hipError_t hipMemcpyDtoHAsync(void *to, hipDeviceptr_t from, size_t size, hipStream_t stream) {
    DO("download", 1, 1, enqueue(H(stream), (Work){.what = COPY, .to = to, .from = from, .to_host = 1, .size = size}));
}
EXPORT hipError_t hipMemcpyDtoDAsync(hipDeviceptr_t to, hipDeviceptr_t from, size_t size, hipStream_t stream) {
    DO("copy", 1, 1, enqueue(H(stream), (Work){.what = COPY, .to = to, .from = from, .size = size}));
}
EXPORT hipError_t hipMemsetD8Async(hipDeviceptr_t to, unsigned char value, size_t size, hipStream_t stream) {
    DO("fill", 1, 1, enqueue(H(stream), (Work){.what = FILL, .to = to, .size = size, .position = value}));
}
EXPORT hipError_t hipStreamCreateWithFlags(hipStream_t *out, unsigned flags) { DO("create_stream", 1, 1, (*out = (hipStream_t)made(STREAM, flags), 0)); }
EXPORT hipError_t hipStreamDestroy(hipStream_t stream) { DO("destroy_stream", 1, 1, core_destroy(H(stream), STREAM)); }
EXPORT hipError_t hipStreamSynchronize(hipStream_t stream) { DO("synchronize", 1, 1, core_synchronize(H(stream))); }
EXPORT hipError_t hipEventCreateWithFlags(hipEvent_t *out, unsigned flags) { DO("create_event", 1, 1, (*out = (hipEvent_t)made(EVENT, flags), 0)); }
EXPORT hipError_t hipEventDestroy(hipEvent_t event) { DO("destroy_event", 1, 1, core_destroy(H(event), EVENT)); }
EXPORT hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream) { DO("record_event", 1, 1, core_record(H(event), H(stream))); }
EXPORT hipError_t hipEventElapsedTime(float *out, hipEvent_t first, hipEvent_t last) { DO("elapsed", 1, 1, core_elapsed(out, H(first), H(last))); }
EXPORT hipError_t hipStreamWaitEvent(hipStream_t stream, hipEvent_t event, unsigned flags) { DO("wait_event", 1, 1, flags ? INVALID : core_wait(H(stream), H(event))); }
EXPORT hipError_t hipEventSynchronize(hipEvent_t event) { DO("synchronize_event", 1, 0, (run_until(((Object *)event)->owner, ((Object *)event)->position), 0)); }
EXPORT hipError_t hipModuleLoadData(hipModule_t *out, const void *image) { DO("load_module", 1, 0, core_load((Object **)out, image)); }
EXPORT hipError_t hipModuleUnload(hipModule_t module) { DO("unload_module", 1, 0, core_destroy(H(module), MODULE)); }
EXPORT hipError_t hipModuleGetFunction(hipFunction_t *out, hipModule_t module, const char *name) { DO("function", 1, 1, core_function((Object **)out, H(module), name)); }
EXPORT hipError_t hipFuncSetAttribute(const void *function, hipFuncAttribute what, int value) {
    DO("set_function_attribute", 1, 1, what == hipFuncAttributeMaxDynamicSharedMemorySize && known(function, FUNCTION) ? (((Object *)function)->shared = value, 0) : INVALID);
}
EXPORT hipError_t hipModuleLaunchKernel(hipFunction_t function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, hipStream_t stream, void **parameters, void **extra) {
    unsigned grid[] = {gx, gy, gz}, threads[] = {bx, by, bz};
    DO("launch", 1, 1, parameters ? INVALID : core_launch(H(function), grid, threads, shared, H(stream), extra, HIP_LAUNCH_PARAM_END));
}
EXPORT hipError_t hipStreamBeginCapture(hipStream_t stream, hipStreamCaptureMode mode) { DO("begin_capture", 1, 0, core_begin(H(stream), mode)); }
EXPORT hipError_t hipStreamEndCapture(hipStream_t stream, hipGraph_t *out) { DO("end_capture", 1, 1, core_end(H(stream), (Object **)out)); }
EXPORT hipError_t hipGraphInstantiateWithFlags(hipGraphExec_t *out, hipGraph_t graph, unsigned long long flags) { DO("instantiate", 1, 0, flags ? INVALID : core_instantiate((Object **)out, H(graph))); }
EXPORT hipError_t hipGraphLaunch(hipGraphExec_t graph, hipStream_t stream) { DO("launch_graph", 1, 1, known(H(graph), EXECUTABLE) ? enqueue(H(stream), (Work){.what = REPLAY, .object = (Object *)graph}) : INVALID); }
EXPORT hipError_t hipGraphDestroy(hipGraph_t graph) { DO("destroy_graph", 1, 1, core_destroy(H(graph), GRAPH)); }
EXPORT hipError_t hipGraphExecDestroy(hipGraphExec_t graph) { DO("destroy_executable", 1, 1, core_destroy(H(graph), EXECUTABLE)); }
