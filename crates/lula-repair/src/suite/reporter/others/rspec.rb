# Makes RSpec tell what each example did, as lines of JSON in a file that nothing printed by an example
# reaches, and takes itself out of the environment, so that what the examples start is not watched.
require "json"

module LulaReport
  REPORT = ENV["LULA_REPORT"]
  HERE = Dir.pwd
  before = ENV["LULA_SPEC_OPTS"]
  ENV["SPEC_OPTS"] = before.to_s.empty? ? nil : before
  %w[LULA_REPORT LULA_FOLDER LULA_SPEC_OPTS].each { |name| ENV.delete(name) }

  def self.say(kind, **values)
    return unless REPORT
    File.open(REPORT, File::WRONLY | File::APPEND | File::CREAT, 0o600) do |file|
      file.syswrite(JSON.generate({ is: kind, **values }) + "\n")
    end
  end

  def self.shortened(text)
    text = text.to_s.dup.force_encoding(Encoding::UTF_8).scrub.gsub(/\e\[[0-9;]*m/, "")
    text.length <= 6000 ? text : "#{text[0, 2000]}\n...\n#{text[-4000..]}"
  end

  def self.explained(error)
    shortened("#{error.class}: #{error.message}\n#{(error.backtrace || []).first(30).join("\n")}")
  end

  # An example without words of its own is named from what it found, which says nothing before it passes.
  def self.named(example)
    file = example.metadata[:file_path].to_s.sub(%r{\A\./}, "")
    return "#{file}[#{example.metadata[:scoped_id]}]" if Array(example.metadata[:description_args]).empty?

    "#{file} > #{example.full_description}"
  end

  def self.told(example, outcome)
    error = outcome == "failed" ? example.execution_result.exception : nil
    say("test", id: named(example), outcome: outcome, message: error ? explained(error) : "")
  end

  def start(*)
    LulaReport.say("begin", runner: "rspec", version: RSpec::Core::Version::STRING, executable: "Ruby #{RUBY_VERSION}", cwd: HERE)
    super
  end

  def finish(*)
    super
  ensure
    LulaReport.say("end")
  end

  def example_started(example)
    LulaReport.say("start", id: LulaReport.named(example))
    super
  end

  { example_passed: "passed", example_failed: "failed", example_pending: "skipped" }.each do |name, outcome|
    define_method(name) do |example|
      LulaReport.told(example, outcome)
      LulaReport.say("done", id: LulaReport.named(example))
      super(example)
    end
  end

  def notify_non_example_exception(exception, context)
    LulaReport.say("test", id: context.to_s.strip.delete_suffix(".").sub("#{HERE}/", "").sub(" ./", " "), outcome: "broken", message: LulaReport.explained(exception))
    super
  end
end

RSpec::Core::Reporter.prepend(LulaReport)
