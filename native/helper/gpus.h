// GPUs through NVML, loaded at run time: a machine without a driver has none, which is no error.
#pragma once

namespace rollscope {

// Answers each line of standard input with one line of JSON, {"gpus":[…]}, until it ends.
int answerAboutGpus();

}  // namespace rollscope
