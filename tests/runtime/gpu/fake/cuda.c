/* See core.h and hip.c. The header's prototypes are those that the compiler holds these against. */
#include <cuda.h>
#define REACHES_HOST 1
#include "core.h"
#define DO(name, context, capture, work) do { int code = enter(name, context, capture); return (CUresult)leave(code ? code : (int)(work)); } while (0)
#define H(p) ((const void *)(p))

EXPORT CUresult cuGetErrorString(CUresult code, const char **out) {
    *out = code == 2 ? "out of memory" : code == 1 ? "invalid argument" : "fake error";
    return 0;
}
EXPORT CUresult cuInit(unsigned flags) { DO("init", 0, 1, flags); }
EXPORT CUresult cuDriverGetVersion(int *out) { *out = version ? version : 13000; return 0; }
EXPORT CUresult cuDeviceGetCount(int *out) { *out = device_count; return 0; }
EXPORT CUresult cuDeviceGet(CUdevice *out, int index) { *out = index; return 0; }
EXPORT CUresult cuDeviceGetName(char *out, int size, CUdevice device) { snprintf(out, size, "%s", devices[device].name); return 0; }
EXPORT CUresult cuDeviceTotalMem_v2(size_t *out, CUdevice device) { (void)device; *out = limit; return 0; }
EXPORT CUresult cuMemGetInfo_v2(size_t *left, size_t *total) { *left = limit - used, *total = limit; return 0; }
EXPORT CUresult cuDeviceGetPCIBusId(char *out, int size, int device) { snprintf(out, size, "%s", devices[device].pci); return 0; }
EXPORT CUresult cuDeviceGetAttribute(int *out, CUdevice_attribute what, int device) {
    switch (what) {
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *out = devices[device].units; return 0;
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE: *out = devices[device].wave; return 0;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *out = 9; return 0;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *out = 4; return 0;
    default: return (CUresult)wrong("the attribute %d is asked for", what);
    }
}
EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice device) { *out = (CUcontext)&contexts[device]; return 0; }
EXPORT CUresult cuCtxGetCurrent(CUcontext *out) { *out = (CUcontext)(current < 0 ? NULL : &contexts[current]); return 0; }
EXPORT CUresult cuCtxSetCurrent(CUcontext context) { current = context ? (int)((int *)context - contexts) : -1; return 0; }
EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *at, size_t size) { DO("allocate", 1, 0, core_allocate(MEMORY, (void **)at, size)); }
EXPORT CUresult cuMemFree_v2(CUdeviceptr at) { DO("free", 1, 0, core_free(MEMORY, (char *)at)); }
EXPORT CUresult cuMemHostAlloc(void **at, size_t size, unsigned flags) { DO("allocate_host", 1, 0, flags ? INVALID : core_allocate(HOST, at, size)); }
EXPORT CUresult cuMemFreeHost(void *at) { DO("free_host", 1, 0, core_free(HOST, at)); }
EXPORT CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t size, CUstream stream) {
    DO("upload", 1, 1, enqueue(H(stream), (Work){.what = COPY, .to = (char *)to, .from = (char *)from, .from_host = 1, .size = size}));
}
EXPORT CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t size, CUstream stream) {
    DO("download", 1, 1, enqueue(H(stream), (Work){.what = COPY, .to = to, .from = (char *)from, .to_host = 1, .size = size}));
}
EXPORT CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream) {
    DO("copy", 1, 1, enqueue(H(stream), (Work){.what = COPY, .to = (char *)to, .from = (char *)from, .size = size}));
}
EXPORT CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t size, CUstream stream) {
    DO("fill", 1, 1, enqueue(H(stream), (Work){.what = FILL, .to = (char *)to, .size = size, .position = value}));
}
EXPORT CUresult cuStreamCreate(CUstream *out, unsigned flags) { DO("create_stream", 1, 1, (*out = (CUstream)made(STREAM, flags), 0)); }
EXPORT CUresult cuStreamDestroy_v2(CUstream stream) { DO("destroy_stream", 1, 1, core_destroy(H(stream), STREAM)); }
EXPORT CUresult cuStreamSynchronize(CUstream stream) { DO("synchronize", 1, 1, core_synchronize(H(stream))); }
EXPORT CUresult cuEventCreate(CUevent *out, unsigned flags) { DO("create_event", 1, 1, (*out = (CUevent)made(EVENT, flags), 0)); }
EXPORT CUresult cuEventDestroy_v2(CUevent event) { DO("destroy_event", 1, 1, core_destroy(H(event), EVENT)); }
EXPORT CUresult cuEventRecord(CUevent event, CUstream stream) { DO("record_event", 1, 1, core_record(H(event), H(stream))); }
#undef cuEventElapsedTime /* the older of two equal functions: all drivers have it */
EXPORT CUresult cuEventElapsedTime(float *out, CUevent first, CUevent last) { DO("elapsed", 1, 1, core_elapsed(out, H(first), H(last))); }
EXPORT CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) { DO("wait_event", 1, 1, flags ? INVALID : core_wait(H(stream), H(event))); }
EXPORT CUresult cuEventSynchronize(CUevent event) { DO("synchronize_event", 1, 0, (run_until(((Object *)event)->owner, ((Object *)event)->position), 0)); }
EXPORT CUresult cuModuleLoadData(CUmodule *out, const void *image) { DO("load_module", 1, 0, core_load((Object **)out, image)); }
EXPORT CUresult cuModuleUnload(CUmodule module) { DO("unload_module", 1, 0, core_destroy(H(module), MODULE)); }
EXPORT CUresult cuModuleGetFunction(CUfunction *out, CUmodule module, const char *name) { DO("function", 1, 1, core_function((Object **)out, H(module), name)); }
EXPORT CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute what, int value) {
    DO("set_function_attribute", 1, 1, what == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES && known(H(function), FUNCTION) ? (((Object *)function)->shared = value, 0) : INVALID);
}
EXPORT CUresult cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, CUstream stream, void **parameters, void **extra) {
    unsigned grid[] = {gx, gy, gz}, threads[] = {bx, by, bz};
    DO("launch", 1, 1, parameters ? INVALID : core_launch(H(function), grid, threads, shared, H(stream), extra, CU_LAUNCH_PARAM_END));
}
EXPORT CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra) {
    unsigned grid[] = {config->gridDimX, config->gridDimY, config->gridDimZ}, threads[] = {config->blockDimX, config->blockDimY, config->blockDimZ};
    int known = config->numAttrs == 1 && config->attrs->id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION && config->attrs->value.programmaticStreamSerializationAllowed == 1;
    DO("launch_with", 1, 1, parameters || !known ? INVALID : core_launch(H(function), grid, threads, config->sharedMemBytes, H(config->hStream), extra, CU_LAUNCH_PARAM_END));
}
EXPORT CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) { DO("begin_capture", 1, 0, core_begin(H(stream), mode)); }
EXPORT CUresult cuStreamEndCapture(CUstream stream, CUgraph *out) { DO("end_capture", 1, 1, core_end(H(stream), (Object **)out)); }
EXPORT CUresult cuGraphInstantiateWithFlags(CUgraphExec *out, CUgraph graph, unsigned long long flags) { DO("instantiate", 1, 0, flags ? INVALID : core_instantiate((Object **)out, H(graph))); }
EXPORT CUresult cuGraphLaunch(CUgraphExec graph, CUstream stream) { DO("launch_graph", 1, 1, known(H(graph), EXECUTABLE) ? enqueue(H(stream), (Work){.what = REPLAY, .object = (Object *)graph}) : INVALID); }
EXPORT CUresult cuGraphDestroy(CUgraph graph) { DO("destroy_graph", 1, 1, core_destroy(H(graph), GRAPH)); }
EXPORT CUresult cuGraphExecDestroy(CUgraphExec graph) { DO("destroy_executable", 1, 1, core_destroy(H(graph), EXECUTABLE)); }
