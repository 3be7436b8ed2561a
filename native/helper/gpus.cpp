#include "gpus.h"

#include <cstdio>
#include <iostream>
#include <string>

#include <dlfcn.h>

#include "json_text.h"

namespace rollscope {

namespace {

using Device = void*;
struct Utilization {
  unsigned gpu;
  unsigned memory;
};
struct Memory {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};

class Nvml {
 public:
  Nvml() {
    library_ = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library_ == nullptr) return;
    const auto init = find<int (*)()>("nvmlInit_v2");
    count_ = find<int (*)(unsigned*)>("nvmlDeviceGetCount_v2");
    handle_ = find<int (*)(unsigned, Device*)>("nvmlDeviceGetHandleByIndex_v2");
    name_ = find<int (*)(Device, char*, unsigned)>("nvmlDeviceGetName");
    utilization_ = find<int (*)(Device, Utilization*)>("nvmlDeviceGetUtilizationRates");
    memory_ = find<int (*)(Device, Memory*)>("nvmlDeviceGetMemoryInfo");
    ready_ = init != nullptr && count_ != nullptr && handle_ != nullptr && name_ != nullptr &&
             utilization_ != nullptr && memory_ != nullptr && init() == 0;
  }

  ~Nvml() {
    if (ready_) {
      if (const auto end = find<int (*)()>("nvmlShutdown")) end();
    }
    if (library_ != nullptr) dlclose(library_);
  }
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  std::string describe() const {
    unsigned count = 0;
    if (!ready_ || count_(&count) != 0) return "[]";
    std::string list = "[";
    for (unsigned index = 0; index < count; ++index) {
      Device device = nullptr;
      if (handle_(index, &device) != 0) continue;
      char name[128] = "";
      Utilization use{};
      Memory memory{};
      name_(device, name, sizeof name);
      // A GPU that is cut into instances tells no use of its own.
      const bool tells = utilization_(device, &use) == 0;
      if (memory_(device, &memory) != 0) continue;
      char fraction[32];
      std::snprintf(fraction, sizeof fraction, "%.2f", tells ? use.gpu / 100.0 : 0.0);
      if (list.size() > 1) list += ",";
      list += "{\"name\":" + jsonText(name) + ",\"utilisation\":" + fraction +
              ",\"memoryUsed\":" + std::to_string(memory.used) + ",\"memoryTotal\":" + std::to_string(memory.total) + "}";
    }
    return list + "]";
  }

 private:
  template <typename Function>
  Function find(const char* name) const {
    return reinterpret_cast<Function>(dlsym(library_, name));
  }

  void* library_ = nullptr;
  bool ready_ = false;
  int (*count_)(unsigned*) = nullptr;
  int (*handle_)(unsigned, Device*) = nullptr;
  int (*name_)(Device, char*, unsigned) = nullptr;
  int (*utilization_)(Device, Utilization*) = nullptr;
  int (*memory_)(Device, Memory*) = nullptr;
};

}  // namespace

int answerAboutGpus() {
  const Nvml nvml;
  for (std::string line; std::getline(std::cin, line);)
    std::cout << "{\"gpus\":" << nvml.describe() << "}" << std::endl;
  return 0;
}

}  // namespace rollscope
