// A CUDA driver, runtime and cuBLAS for a GPU that computes nothing (see null_gpu.py).
//
// Device memory is host memory of zeros. Kernels are counted and not run. Small copies are made; large copies between
// tensors of the device are not. null_gpu.py adds all functions that are not written here; they return 0.
#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <pthread.h>
#include <sys/mman.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

namespace {
enum Kind { PAGEABLE, DEVICE, PINNED };
struct Span { size_t size; Kind kind; };
std::mutex lock;
std::map<char*, Span> spans;
char handles[1 << 20];  // addresses that stand for streams, events, graphs and descriptors
size_t used = 64;
constexpr size_t SMALL = 1 << 16;  // bytes

void* take(size_t size, Kind kind) {
  size = (size + 4095) & ~size_t(4095);
  auto* memory = static_cast<char*>(mmap(nullptr, size ? size : 4096, PROT_READ | PROT_WRITE,
                                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  std::lock_guard<std::mutex> guard(lock);
  spans[memory] = {size ? size : 4096, kind};
  return memory;
}

void drop(void* memory) {
  std::lock_guard<std::mutex> guard(lock);
  auto found = spans.find(static_cast<char*>(memory));
  if (found == spans.end()) return;
  munmap(found->first, found->second.size);
  spans.erase(found);
}

Kind kind_of(const void* address) {
  std::lock_guard<std::mutex> guard(lock);
  auto* place = static_cast<char*>(const_cast<void*>(address));
  auto found = spans.upper_bound(place);
  if (found == spans.begin()) return PAGEABLE;
  --found;
  return place < found->first + found->second.size ? found->second.kind : PAGEABLE;
}

template <typename Handle>
int give(Handle* handle) {
  std::lock_guard<std::mutex> guard(lock);
  used = (used + 8) % sizeof handles;
  *handle = reinterpret_cast<Handle>(handles + used);
  return 0;
}

// The capture of a CUDA graph. An operation that CUDA does not permit during a capture is reported and makes it fail.
void* capturing = nullptr;  // the stream
pthread_t capturer;
unsigned long long captures = 0;
bool broken = false;
thread_local cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
long launches = 0, replays = 0;

void refuse(const char* what) {
  if (mode == cudaStreamCaptureModeRelaxed) return;  // torch's own work for a capture
  broken = true;
  fprintf(stderr, "null GPU: not permitted during a capture: %s\n", what);
}

void unsafe(const char* what) {
  if (capturing && pthread_equal(capturer, pthread_self())) refuse(what);
}

void launch(void* stream) {
  launches++;
  if (capturing && stream != capturing) refuse("a kernel or a copy on another stream");
}

int copy(void* to, const void* from, size_t size, void* stream) {
  launch(stream);
  Kind source = kind_of(from), target = kind_of(to);
  if (capturing && stream == capturing && (source == PAGEABLE || target == PAGEABLE)) refuse("a copy of pageable memory");
  if (source != DEVICE || target != DEVICE || size <= SMALL) memmove(to, from, size);
  return 0;
}

int attribute(int* value, int which) {  // of an H100; the numbers are those of cudaDeviceAttr and CUdevice_attribute
  static const std::map<int, int> values = {{1, 1024}, {8, 49152}, {10, 32}, {12, 65536}, {13, 1980000}, {16, 132},
      {36, 2619000}, {37, 5120}, {39, 2048}, {75, 9}, {76, 0}, {81, 233472}, {82, 65536}, {97, 232448}};
  auto found = values.find(which);
  *value = found == values.end() ? 1 : found->second;
  return 0;
}

thread_local void* configured = nullptr;  // the stream of a launch by <<<>>>

struct Report {
  ~Report() {
    if (launches && getenv("NULL_GPU_REPORT")) fprintf(stderr, "null GPU: %ld launches, %ld replays of graphs\n", launches, replays);
  }
} report;
}  // namespace

#define DONE return cudaSuccess
extern "C" {
// Devices
cudaError_t cudaGetDeviceCount(int* count) { *count = 1; DONE; }
cudaError_t cudaGetDevice(int* device) { *device = 0; DONE; }
cudaError_t cudaDriverGetVersion(int* version) { *version = CUDART_VERSION; DONE; }
cudaError_t cudaRuntimeGetVersion(int* version) { *version = CUDART_VERSION; DONE; }
cudaError_t cudaDeviceGetPCIBusId(char* name, int, int) { strcpy(name, "0000:00:00.0"); DONE; }
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr which, int) { attribute(value, which); DONE; }
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) { *least = 0; *greatest = -5; DONE; }
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* of, int) {
  memset(of, 0, sizeof *of);
  strcpy(of->name, "a GPU that computes nothing");
  of->major = 9, of->multiProcessorCount = 132, of->warpSize = 32, of->totalGlobalMem = size_t(80) << 30;
  of->maxThreadsPerMultiProcessor = 2048, of->maxThreadsPerBlock = 1024, of->maxBlocksPerMultiProcessor = 32;
  of->sharedMemPerBlock = 49152, of->sharedMemPerBlockOptin = 232448, of->sharedMemPerMultiprocessor = 233472;
  of->regsPerMultiprocessor = of->regsPerBlock = 65536, of->l2CacheSize = 50 << 20, of->memoryBusWidth = 5120;
  for (int i = 0; i < 3; i++) of->maxGridSize[i] = i ? 65535 : 2147483647, of->maxThreadsDim[i] = i == 2 ? 64 : 1024;
  DONE;
}

// Memory
cudaError_t cudaMalloc(void** memory, size_t size) { *memory = take(size, DEVICE); DONE; }
cudaError_t cudaFree(void* memory) { drop(memory); DONE; }
cudaError_t cudaHostAlloc(void** memory, size_t size, unsigned) { *memory = take(size, PINNED); DONE; }
cudaError_t cudaFreeHost(void* memory) { drop(memory); DONE; }
cudaError_t cudaGetSymbolAddress(void** memory, const void*) { *memory = take(4096, DEVICE); DONE; }
cudaError_t cudaMemGetInfo(size_t* unused, size_t* all) { *unused = size_t(78) << 30; *all = size_t(80) << 30; DONE; }
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t size, cudaMemcpyKind, cudaStream_t stream) {
  copy(to, from, size, stream);
  DONE;
}
cudaError_t cudaMemcpy(void* to, const void* from, size_t size, cudaMemcpyKind) {
  unsafe("cudaMemcpy");
  memmove(to, from, size);
  DONE;
}
cudaError_t cudaMemsetAsync(void* memory, int value, size_t size, cudaStream_t stream) {
  launch(stream);
  if (size <= SMALL) memset(memory, value, size);
  DONE;
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* of, const void* address) {
  memset(of, 0, sizeof *of);
  Kind kind = kind_of(address);
  of->type = kind == DEVICE ? cudaMemoryTypeDevice : kind == PINNED ? cudaMemoryTypeHost : cudaMemoryTypeUnregistered;
  of->devicePointer = of->hostPointer = const_cast<void*>(address);
  DONE;
}

// Streams, events and graphs
cudaError_t cudaStreamCreate(cudaStream_t* stream) { give(stream); DONE; }
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int) { give(stream); DONE; }
cudaError_t cudaStreamGetPriority(cudaStream_t, int* priority) { *priority = 0; DONE; }
cudaError_t cudaEventCreate(cudaEvent_t* event) { give(event); DONE; }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) { give(event); DONE; }
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t, cudaEvent_t) { *milliseconds = 1; DONE; }
cudaError_t cudaDeviceSynchronize() { unsafe("cudaDeviceSynchronize"); DONE; }
cudaError_t cudaStreamSynchronize(cudaStream_t) { unsafe("cudaStreamSynchronize"); DONE; }
cudaError_t cudaEventSynchronize(cudaEvent_t) { unsafe("cudaEventSynchronize"); DONE; }
cudaError_t cudaEventQuery(cudaEvent_t) { unsafe("cudaEventQuery"); DONE; }
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* other) { std::swap(mode, *other); DONE; }
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  capturing = stream, capturer = pthread_self(), broken = false, captures++;
  if (!stream) refuse("the default stream");
  DONE;
}
cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t* graph) {
  capturing = nullptr;
  give(graph);
  return broken ? cudaErrorStreamCaptureInvalidated : cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  *status = stream && stream == capturing ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  DONE;
}
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id,
                                     cudaGraph_t*, const cudaGraphNode_t**, const cudaGraphEdgeData**, size_t* count) {
  cudaStreamIsCapturing(stream, status);
  if (id) *id = captures;
  if (count) *count = 0;
  DONE;
}
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* made, cudaGraph_t, unsigned long long) { give(made); DONE; }
cudaError_t cudaGraphLaunch(cudaGraphExec_t, cudaStream_t) { replays++; DONE; }
cudaError_t cudaGraphGetNodes(cudaGraph_t, cudaGraphNode_t*, size_t* count) { *count = 1; DONE; }

// Kernels
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* of, const void*) {
  memset(of, 0, sizeof *of);
  of->maxThreadsPerBlock = 1024, of->numRegs = 32, of->binaryVersion = of->ptxVersion = 90;
  DONE;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* count, const void*, int, size_t) { *count = 2; DONE; }
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* count, const void*, int, size_t, unsigned) {
  *count = 2;
  DONE;
}
cudaError_t cudaLaunchKernel(const void*, dim3, dim3, void**, size_t, cudaStream_t stream) { launch(stream); DONE; }
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* of, const void*, void**) { launch(of->stream); DONE; }
cudaError_t __cudaLaunchKernel(const void*, dim3, dim3, void**, size_t, cudaStream_t stream) { launch(stream); DONE; }
unsigned __cudaPushCallConfiguration(dim3, dim3, size_t, void* stream) { configured = stream; return 0; }
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared, void* stream) {
  *grid = *block = dim3(1, 1, 1), *shared = 0, *static_cast<void**>(stream) = configured;
  DONE;
}
void** __cudaRegisterFatBinary(void*) { static void* handle[8]; return handle; }
const char* cudaGetErrorString(cudaError_t) { return "an error of the null GPU"; }
const char* cudaGetErrorName(cudaError_t) { return "an error of the null GPU"; }
cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult* result) {
  *function = dlsym(RTLD_DEFAULT, name);
  if (result) *result = *function ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return *function ? cudaSuccess : cudaErrorSymbolNotFound;
}

// cuBLAS
cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) { give(handle); return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasGetMathMode(cublasHandle_t, cublasMath_t* mode) {
  *mode = CUBLAS_DEFAULT_MATH;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasGetPointerMode_v2(cublasHandle_t, cublasPointerMode_t* mode) {
  *mode = CUBLAS_POINTER_MODE_HOST;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* made, cublasComputeType_t, cudaDataType_t) {
  give(made);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* made) { give(made); return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* made, cudaDataType, uint64_t, uint64_t, int64_t) {
  give(made);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t,
    cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatmulPreference_t, int,
    cublasLtMatmulHeuristicResult_t* result, int* count) {
  memset(result, 0, sizeof *result);
  *count = 1;
  return CUBLAS_STATUS_SUCCESS;
}
size_t cublasLtGetVersion() { return 130000; }

// The driver, which Triton uses
int cuInit(unsigned) { return 0; }
int cuDriverGetVersion(int* version) { *version = CUDART_VERSION; return 0; }
int cuDeviceGet(int* device, int) { *device = 0; return 0; }
int cuDeviceGetCount(int* count) { *count = 1; return 0; }
int cuDeviceGetAttribute(int* value, int which, int) { return attribute(value, which); }
int cuCtxGetCurrent(void** context) { *context = handles; return 0; }
int cuCtxGetLimit(size_t* limit, int) { *limit = 0; return 0; }
int cuDevicePrimaryCtxGetState(int, unsigned* flags, int* active) { *flags = 0, *active = 1; return 0; }
int cuDevicePrimaryCtxRetain(void** context, int) { *context = handles; return 0; }
int cuFuncGetAttribute(int* value, int which, void*) { *value = which ? 0 : 1024; return 0; }
int cuGetErrorString(int, const char** text) { *text = "an error of the null GPU"; return 0; }
int cuModuleLoad(void** made, const char*) { return give(made); }
int cuModuleLoadData(void** made, const void*) { return give(made); }
int cuModuleLoadDataEx(void** made, const void*, unsigned, void*, void**) { return give(made); }
int cuModuleGetFunction(void** made, void*, const char*) { return give(made); }
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int* count, void*, int, size_t) { *count = 2; return 0; }
int cuOccupancyMaxActiveClusters(int* count, void*, void*) { *count = 2; return 0; }
int cuLaunchKernel(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void* stream, void**,
                   void**) {
  launch(stream);
  return 0;
}
struct LaunchConfig { unsigned sizes[7]; void* stream; };
int cuLaunchKernelEx(const LaunchConfig* of, void*, void**, void**) { launch(of->stream); return 0; }
int cuPointerGetAttribute(void* value, int which, uint64_t address) {
  if (kind_of(reinterpret_cast<void*>(address)) == PAGEABLE) return 1;
  *static_cast<uint64_t*>(value) = which == 3 ? address : 0;  // 3: the address on the device
  return 0;
}
int cuGetProcAddress_v2(const char* name, void** function, int, uint64_t, int* status) {
  *function = dlsym(RTLD_DEFAULT, name);
  if (status) *status = !*function;
  return *function ? 0 : 500;
}
}
