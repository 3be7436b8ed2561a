#include "supervise.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <optional>
#include <set>
#include <string_view>

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include "bounded_log.h"
#include "json_text.h"
#include "machine_memory.h"
#include "process_tree.h"

namespace rollscope {

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::size_t kept_tail = 16'384;
constexpr int memory_milliseconds = 2000;
constexpr milliseconds patience{2000};
constexpr milliseconds longest_end{8000};

int wake_up[2] = {-1, -1};

void onChild(int) {
  const int saved = errno;
  const char byte = 0;
  [[maybe_unused]] const auto ignored = write(wake_up[1], &byte, 1);
  errno = saved;
}

bool makePipe(int (&ends)[2]) {
  if (pipe(ends) != 0) return false;
  for (const int end : ends) fcntl(end, F_SETFD, FD_CLOEXEC);
  return true;
}

std::int64_t millisecondsSince1970() {
  return std::chrono::duration_cast<milliseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string numberOrNull(const std::optional<std::int64_t>& number) { return number ? std::to_string(*number) : "null"; }

// The file is whole or is not there.
void writeWhole(const std::string& file, const std::string& text) {
  const std::string part = file + ".part";
  const int descriptor = open(part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (descriptor < 0) return;
  std::string_view rest = text;
  while (!rest.empty()) {
    const ssize_t written = write(descriptor, rest.data(), rest.size());
    if (written <= 0) break;
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
  close(descriptor);
  if (rest.empty()) std::rename(part.c_str(), file.c_str());
  else unlink(part.c_str());
}

void tell(const std::string& line) {
  // The daemon may be gone; nobody needs it.
  const std::string text = line + "\n";
  [[maybe_unused]] const auto ignored = write(STDOUT_FILENO, text.data(), text.size());
}

// Numbers of the signals that end processes, by name.
std::string signalName(int number) {
  switch (number) {
    case SIGKILL: return "SIGKILL";
    case SIGTERM: return "SIGTERM";
    case SIGINT: return "SIGINT";
    case SIGHUP: return "SIGHUP";
    case SIGSEGV: return "SIGSEGV";
    case SIGABRT: return "SIGABRT";
    case SIGBUS: return "SIGBUS";
    case SIGILL: return "SIGILL";
    case SIGFPE: return "SIGFPE";
    case SIGPIPE: return "SIGPIPE";
    case SIGQUIT: return "SIGQUIT";
    case SIGTRAP: return "SIGTRAP";
    case SIGXCPU: return "SIGXCPU";
    default: return "signal " + std::to_string(number);
  }
}

// One of the program's two streams, on its way to the log.
class Stream {
 public:
  Stream(int descriptor, bool keeps_tail, bool finds_debugger)
      : descriptor_(descriptor), keeps_tail_(keeps_tail), finds_debugger_(finds_debugger) {
    fcntl(descriptor_, F_SETFL, fcntl(descriptor_, F_GETFL) | O_NONBLOCK);
  }

  int descriptor() const { return descriptor_; }
  const std::string& tail() const { return tail_; }

  // Takes what is there; false when the stream has ended.
  bool drain(BoundedLog& log) {
    char bytes[65'536];
    for (;;) {
      const ssize_t got = read(descriptor_, bytes, sizeof bytes);
      if (got > 0) {
        take({bytes, static_cast<std::size_t>(got)}, log);
        continue;
      }
      if (got < 0 && errno == EINTR) continue;
      if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return true;
      finish(log);
      return false;
    }
  }

  // Writes a last line that has no end.
  void finish(BoundedLog& log) {
    keep(held_, log);
    held_.clear();
  }

 private:
  void take(std::string_view text, BoundedLog& log) {
    if (!finds_debugger_) return keep(text, log);
    held_ += text;
    for (auto end = held_.find('\n'); end != std::string::npos; end = held_.find('\n')) {
      const std::string line = held_.substr(0, end + 1);
      held_.erase(0, end + 1);
      constexpr std::string_view announced = "Debugger listening on ";
      if (line.rfind(announced, 0) == 0) {
        std::string url = line.substr(announced.size());
        while (!url.empty() && (url.back() == '\n' || url.back() == '\r')) url.pop_back();
        tell("{\"event\":\"debugger\",\"url\":" + jsonText(url) + "}");
        continue;
      }
      keep(line, log);
    }
  }

  void keep(std::string_view text, BoundedLog& log) {
    log.write(text);
    if (!keeps_tail_) return;
    tail_ += text;
    if (tail_.size() > 2 * kept_tail) tail_.erase(0, tail_.size() - kept_tail);
  }

  int descriptor_;
  bool keeps_tail_;
  bool finds_debugger_;
  std::string held_;
  std::string tail_;
};

// Starts the program; 0 with `error` set when that fails.
pid_t startProgram(const std::vector<std::string>& command, int out, int err, int& error) {
  int failure[2];
  if (!makePipe(failure)) {
    error = errno;
    return 0;
  }
  const pid_t child = fork();
  if (child < 0) {
    error = errno;
    return 0;
  }
  if (child == 0) {
    setsid();
    for (const int number : {SIGPIPE, SIGHUP, SIGINT, SIGTERM, SIGCHLD}) signal(number, SIG_DFL);
    const int nothing = open("/dev/null", O_RDONLY);
    dup2(nothing, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
    std::vector<char*> words;
    for (const auto& word : command) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    execvp(words[0], words.data());
    const int why = errno;
    [[maybe_unused]] const auto ignored = write(failure[1], &why, sizeof why);
    _exit(127);
  }
  close(failure[1]);
  const bool failed = read(failure[0], &error, sizeof error) == sizeof error;
  close(failure[0]);
  if (!failed) return child;
  waitpid(child, nullptr, 0);
  return 0;
}

// Reaps orphans that came to this process. True once the program itself has ended; it stays a zombie, so that neither its number
// nor that of its group can be given to others.
bool hasEnded(pid_t program, siginfo_t& how) {
  for (;;) {
    siginfo_t seen{};
    if (waitid(P_ALL, 0, &seen, WEXITED | WNOHANG | WNOWAIT) != 0 || seen.si_pid == 0) return false;
    if (seen.si_pid == program) {
      how = seen;
      return true;
    }
    waitpid(seen.si_pid, nullptr, WNOHANG);
  }
}

void reapOthers(const std::set<pid_t>& known) {
  for (const pid_t process : known) waitpid(process, nullptr, WNOHANG);
}

// Ends what the program has left: its process group, and every process that came from it, wherever it went.
int endRest(pid_t program, Stream& out, Stream& err, BoundedLog& log) {
  std::set<pid_t> seen;
  const auto began = Clock::now();
  for (;;) {
    const auto rest = descendantsOf(getpid());
    for (const pid_t process : rest) seen.insert(process);
    const bool isForced = Clock::now() - began > patience;
    const int number = isForced ? SIGKILL : SIGTERM;
#ifdef __linux__
    if (rest.empty()) break;
#endif
    const bool groupIsThere = kill(-program, number) == 0;
    for (const pid_t process : rest) kill(process, number);
#ifndef __linux__
    if (!groupIsThere || isForced) break;
#else
    static_cast<void>(groupIsThere);
#endif
    if (Clock::now() - began > longest_end) break;
    pollfd streams[2] = {{out.descriptor(), POLLIN, 0}, {err.descriptor(), POLLIN, 0}};
    poll(streams, 2, 50);
    out.drain(log);
    err.drain(log);
    reapOthers(seen);
    if (poll(nullptr, 0, 20) < 0 && errno != EINTR) break;
  }
  return static_cast<int>(seen.size());
}

}  // namespace

int supervise(const SuperviseRequest& request) {
  int out[2];
  int err[2];
  if (!makePipe(out) || !makePipe(err) || !makePipe(wake_up)) return 1;
  for (const int end : wake_up) fcntl(end, F_SETFL, O_NONBLOCK);
  for (const int number : {SIGPIPE, SIGHUP, SIGINT, SIGTERM}) signal(number, SIG_IGN);
  struct sigaction action{};
  action.sa_handler = onChild;
  action.sa_flags = SA_RESTART;
  sigaction(SIGCHLD, &action, nullptr);
#ifdef __linux__
  prctl(PR_SET_CHILD_SUBREAPER, 1);
#endif
  const MemoryKills kills_before = memoryKills();
  int error = 0;
  const pid_t program = startProgram(request.command, out[1], err[1], error);
  close(out[1]);
  close(err[1]);
  if (program == 0) {
    tell("{\"event\":\"failed\",\"message\":" + jsonText(std::strerror(error)) + "}");
    return 1;
  }
  const std::string start = startOf(program);
  unlink((request.folder + "/exit.json").c_str());
  writeWhole(request.folder + "/process.json",
             "{\"pid\":" + std::to_string(program) + ",\"start\":" + jsonText(start) +
                 ",\"attempt\":" + std::to_string(request.attempt) + ",\"helper\":" + std::to_string(getpid()) +
                 ",\"helperStart\":" + jsonText(startOf(getpid())) + "}\n");
  tell("{\"event\":\"started\",\"pid\":" + std::to_string(program) + ",\"start\":" + jsonText(start) + "}");

  BoundedLog log(request.folder + "/run.log", request.log_bytes);
  Stream output(out[0], false, false);
  Stream errors(err[0], true, request.debug);
  bool has_output = true;
  bool has_errors = true;
  std::optional<std::int64_t> available = availableMemory();
  auto looked = Clock::now();
  siginfo_t how{};
  while (!hasEnded(program, how)) {
    pollfd waits[3] = {{wake_up[0], POLLIN, 0}, {has_output ? out[0] : -1, POLLIN, 0}, {has_errors ? err[0] : -1, POLLIN, 0}};
    poll(waits, 3, memory_milliseconds);
    char bytes[64];
    while (read(wake_up[0], bytes, sizeof bytes) > 0) {
    }
    if (has_output) has_output = output.drain(log);
    if (has_errors) has_errors = errors.drain(log);
    if (Clock::now() - looked >= milliseconds{memory_milliseconds}) {
      available = availableMemory();
      looked = Clock::now();
    }
  }
  const std::int64_t at = millisecondsSince1970();
  output.drain(log);
  errors.drain(log);
  const int ended = endRest(program, output, errors, log);
  output.drain(log);
  errors.drain(log);
  output.finish(log);
  errors.finish(log);

  const MemoryKills kills = memoryKills();
  rusage usage{};
  int status = 0;
  wait4(program, &status, 0, &usage);
#ifdef __APPLE__
  const std::int64_t peak = usage.ru_maxrss;
#else
  const std::int64_t peak = static_cast<std::int64_t>(usage.ru_maxrss) * 1024;
#endif
  const bool was_killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  const auto more = [](const std::optional<std::int64_t>& before, const std::optional<std::int64_t>& after) {
    return before && after && *after > *before;
  };
  std::string for_memory = "false";
  if (was_killed) {
    if (more(kills_before.group, kills.group)) for_memory = "true";
    else if (kills.group) for_memory = "false";
    else if (kills.machine) for_memory = more(kills_before.machine, kills.machine) ? "true" : "false";
    else for_memory = "null";
  }
  const std::string& tail = errors.tail();
  const std::string last = tail.size() > kept_tail ? tail.substr(tail.size() - kept_tail) : tail;
  const std::string report =
      "{\"pid\":" + std::to_string(program) +
      ",\"exitCode\":" + (WIFEXITED(status) ? std::to_string(WEXITSTATUS(status)) : "null") +
      ",\"signal\":" + (WIFSIGNALED(status) ? jsonText(signalName(WTERMSIG(status))) : "null") +
      ",\"stderrTail\":" + jsonText(last) + ",\"memory\":{\"peak\":" + std::to_string(peak) +
      ",\"available\":" + numberOrNull(available) + ",\"killedForMemory\":" + for_memory +
      "},\"ended\":" + std::to_string(ended) + ",\"at\":" + std::to_string(at) + "}\n";
  writeWhole(request.folder + "/exit.json", report);
  tell("{\"event\":\"ended\"}");
  return 0;
}

}  // namespace rollscope
