// The turn-taking of generation_service.h.
#include "generation/generation_service.h"

#include <utility>

namespace rollscope {

std::shared_ptr<GenerationService> GenerationService::create(ComputeThread& compute, std::shared_ptr<Model> model,
                                                             const GeneratorOptions& options, TokenBytes token_bytes, Deliver deliver) {
  std::shared_ptr<GenerationService> service(new GenerationService(compute, std::move(model), std::move(deliver)));
  service->generator_ = std::make_unique<Generator>(*service->model_, options, std::move(token_bytes));
  service->health_ = service->generator_->health();
  return service;
}

void GenerationService::submit(std::vector<std::pair<int64_t, GenerationRequest>> requests) {
  auto shared = std::make_shared<std::vector<std::pair<int64_t, GenerationRequest>>>(std::move(requests));
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    submitted_ += static_cast<int64_t>(shared->size());
  }
  post([shared](Generator& generator, MatrixProducts&) {
    for (auto& [id, request] : *shared) generator.submit(id, std::move(request));
  });
}

void GenerationService::abort(int64_t id) {
  post([id](Generator& generator, MatrixProducts&) { generator.abort(id); });
}

void GenerationService::pause(PauseMode mode, Done done) {
  post([this, mode, done = std::move(done)](Generator& generator, MatrixProducts&) {
    generator.pause(mode);
    settling_.push_back(done);
  });
}

void GenerationService::resume(Done done) {
  post_result(
      [this](Generator& generator, MatrixProducts&) {
        generator.resume();
        settle();
        return int64_t{0};
      },
      std::move(done));
}

void GenerationService::update_weights(Done done) {
  post_result([](Generator& generator, MatrixProducts& products) { return generator.update_weights(products); }, std::move(done));
}

void GenerationService::release_memory(Done done) {
  post_result(
      [](Generator& generator, MatrixProducts&) {
        generator.release_memory();
        return int64_t{0};
      },
      std::move(done));
}

void GenerationService::restore_memory(Done done) {
  post_result(
      [](Generator& generator, MatrixProducts& products) {
        generator.restore_memory(products);
        return int64_t{0};
      },
      std::move(done));
}

GeneratorHealth GenerationService::health() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  GeneratorHealth health = health_;
  health.queued += submitted_;
  return health;
}

void GenerationService::close() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    is_closed_ = true;
    inbox_.clear();
  }
  const std::lock_guard<std::mutex> lock(outside_);
  is_silent_ = true;
}

void GenerationService::settle() {
  for (const Done& settled : std::exchange(settling_, {})) tell([&] { settled(0, nullptr); });
}

void GenerationService::post_result(std::function<int64_t(Generator&, MatrixProducts&)> work, Done done) {
  post([this, work = std::move(work), done = std::move(done)](Generator& generator, MatrixProducts& products) {
    try {
      const int64_t result = work(generator, products);
      {
        // Whoever learns that the work is done must not read a health from before it.
        const std::lock_guard<std::mutex> lock(mutex_);
        health_ = generator.health();
      }
      tell([&] { done(result, nullptr); });
    } catch (const EngineError& error) {
      tell([&] { done(0, &error); });
    } catch (const std::exception& failure) {
      const EngineError error = unexpected(failure);
      tell([&] { done(0, &error); });
    }
  });
}

void GenerationService::post(Command command) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (is_closed_) return;
  inbox_.push_back(std::move(command));
  enqueue();
}

/// Needs the mutex.
void GenerationService::enqueue() {
  if (is_enqueued_) return;
  is_enqueued_ = true;
  compute_.submit([self = shared_from_this()](MatrixProducts& products) { self->run(products); });
}

void GenerationService::run(MatrixProducts& products) {
  std::vector<Command> commands;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    is_enqueued_ = false;
    if (is_closed_) return;
    commands.swap(inbox_);
    submitted_ = 0;
  }
  for (const Command& command : commands) command(*generator_, products);
  generator_->iterate(products);
  std::vector<GenerationEvent> events = generator_->take_events();
  const bool is_settled = generator_->has_settled();
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    health_ = generator_->health();
    if (is_closed_) return;
    if (generator_->has_work() || !inbox_.empty()) enqueue();
  }
  if (!events.empty()) tell([&] { deliver_(std::move(events)); });
  if (is_settled) settle();
}

}  // namespace rollscope
