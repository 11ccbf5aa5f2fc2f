"""Mistakes in the engine's bookkeeping, made on purpose, each of which one unit test has to see (run_mutations.py).

They are such as people make: off by one, a hold or a release forgotten, an order turned round, a check left out. Each row
has words that stand once in its file, whatever the white space between them, and what comes in their place.
"""

from typing import NamedTuple


class Mutation(NamedTuple):
    name: str  # what is wrong
    file: str
    before: str
    after: str
    target: str  # the test's binary
    test: str  # of its tests, the one that has to fail


SCHEDULER_TEST = "pagoda_scheduler_test"
KV_TEST = "pagoda_kv_test"
ANSWER_TEST = "pagoda_answer_test"
SERVING_TEST = "pagoda_serving_test"

SCHEDULER = (
    Mutation("a chunk that does not count in the budget", "src/engine/scheduler.cc",
             "shares.num_prefill_tokens -= num_tokens; return num_tokens;", "return num_tokens;",
             SCHEDULER_TEST, "SchedulerTest.TakesDecodesFirstAndFillsTheBudgetWithChunks"),
    Mutation("a sequence is admitted to where another one grows", "src/engine/scheduler.cc",
             "std::min(tables_.blocks_for(other->num_tokens()) + 1, worst_case)",
             "std::min(tables_.blocks_for(other->num_tokens()), worst_case)",
             SCHEDULER_TEST, "SchedulerTest.AdmitsWhatFitsBesideABlockForEachThatRuns"),
    Mutation("a preempted sequence keeps its blocks", "src/engine/scheduler.cc",
             "sequence->release_blocks(tables_); ++counters_.num_preemptions;", "++counters_.num_preemptions;",
             SCHEDULER_TEST, "SchedulerTest.PreemptsTheLastArrivalOfTheLowestPriority"),
    Mutation("those that fetch have no places", "src/engine/scheduler.cc",
             "num_running() - static_cast<int>(fetching_.size());", "num_running();",
             SCHEDULER_TEST, "SchedulerTierTest.OneThatFetchesHasItsPlace"),
    Mutation("sources of copies are held for good", "src/engine/scheduler_outcomes.cc",
             "tables_.end_step(completed.block_copies);", "completed.block_copies.clear();",
             SCHEDULER_TEST, "SchedulerTest.SamplesShareThePromptsBlocksUntilTheyWrite"),
    Mutation("a sample that was cancelled begins", "src/engine/scheduler_outcomes.cc",
             "if (fork->cancelled_) {", "if (fork->finished()) {",
             SCHEDULER_TEST, "SchedulerTest.ASampleThatIsCancelledWhileThePromptIsComputedHasNoToken"),
    Mutation("blocks that the step behind a sequence's end wrote to", "src/engine/scheduler_outcomes.cc",
             "counters_.num_dropped_positions += planned.num_new_tokens; return release(sequence);",
             "counters_.num_dropped_positions += planned.num_new_tokens; return;",
             SCHEDULER_TEST, "SchedulerTest.ASequenceThatEndsGivesBackItsBlocksWithTheStepBehind"),
    Mutation("samples that have left the queue count as waiting", "src/engine/waiting_queue.cc",
             "num_forks_ -= sequence->num_forks(); return sequence;", "return sequence;",
             SCHEDULER_TEST, "SchedulerTest.AsManySamplesStartAsHavePlacesAndNobodyWaitsForTheOthers"),
    Mutation("a turn comes a step too soon", "src/engine/waiting_queue.cc",
             "++num_steps_overtaking_ <= num_steps_per_turn_", "++num_steps_overtaking_ < num_steps_per_turn_",
             SCHEDULER_TEST, "SchedulerTest.ATurnComesAfterSoManyStepsOfOvertaking"),
    Mutation("a quarter of the budget is too little for prompts", "src/engine/step_shares.cc",
             "left < budget / 4", "left <= budget / 4", SCHEDULER_TEST, "StepSharesTest.AreAsTheTableSays"),
)

TABLES = (
    Mutation("no block to copy into is no matter", "src/kv/block_tables.cc",
             "if (!copy_shared_block(table, begin, copies)) return begin;", "copy_shared_block(table, begin, copies);",
             KV_TEST, "BlockTablesTest.WithoutABlockToCopyIntoThereIsNoRoom"),
    Mutation("a fork does not hold its blocks", "src/kv/block_tables.cc",
             "if (block_id != kNoBlock) pool_.retain(block_id);", "",
             KV_TEST, "BlockTablesTest.ABlockThatOthersHoldIsCopiedBeforeItIsWritten"),
    Mutation("a fork does not know what it continues", "src/kv/block_tables.cc",
             "to.chain_ = from.chain_;", "", KV_TEST, "BlockTablesTest.WhatAForkAddsIsFoundBehindWhatItShares"),
    Mutation("a block is given back while a step reads it", "src/kv/block_tables.cc",
             "if (in_flight) return;", "", KV_TEST, "BlockTablesTest.OneBlockStandsForTheSameTokens"),
    Mutation("blocks behind a window count as held", "src/kv/block_tables.cc",
             "release(std::exchange(blocks.ids[blocks.first], kNoBlock)); --blocks.num_held;",
             "release(std::exchange(blocks.ids[blocks.first], kNoBlock));",
             KV_TEST, "GroupTablesTest.BlocksBehindAWindowAreGivenBack"),
    Mutation("a tail within what is cached", "src/kv/block_tables.cc",
             "if (table.chain_.num_cached_blocks != num_full) return;", "",
             KV_TEST, "BlockTablesTest.APartOfACachedBlockIsNoTail"),
    Mutation("empty blocks behind a tail", "src/kv/block_tables.cc",
             "while (static_cast<int>(group.ids.size()) > num_full + 1) release(pop(group));", "(void)group;",
             KV_TEST, "BlockTablesTest.EmptyBlocksBehindATailAreGivenBack"),
    Mutation("parents are evicted before children", "src/kv/block_tables.cc",
             "for (int i = table.num_blocks() - 1; i >= 0; --i) {", "for (int i = 0; i < table.num_blocks(); ++i) {",
             KV_TEST, "BlockTablesTest.TheLastBlockOfAReleasedTableGoesFirst"),
    Mutation("a copy that is done still reads its source", "src/kv/block_tables.cc",
             "--num_copying_[copy.source];", "",
             KV_TEST, "BlockTablesTest.ABlockThatWasCopiedOnceIsCopiedAgain"),
    Mutation("sources are held that nothing is copied from", "src/kv/block_tables.cc",
             "for (const int source : sources) cache_->release(source);", "",
             KV_TEST, "BlockTablesTest.ATailGoesOverWhereThereIsNoBlockToCopyItInto"),
)

PREFIX_CACHE = (
    Mutation("a block that another one computed is not held", "src/kv/prefix_cache.cc",
             "hold(block_id); tables[group].ids[index] = block_id;", "tables[group].ids[index] = block_id;",
             SCHEDULER_TEST, "SchedulerTierTest.WhatSomebodyElseHasComputedIsPassedOver"),
    Mutation("one block for two is not held by both", "src/kv/prefix_cache.cc",
             "hold(known->second);", "", KV_TEST, "PrefixCacheTest.WhatTwoComputeAtOnceStandsInOneBlock"),
    Mutation("one tail less than may stay", "src/kv/prefix_cache.cc",
             "node.num_tails > kMaxTails", "node.num_tails >= kMaxTails",
             KV_TEST, "PrefixCacheTest.ALongerTailTakesTheShorterOnesPlaceAndOnlyFourStay"),
    Mutation("a full block's match is taken where a tail's is as long", "src/kv/prefix_cache.cc",
             "common <= best.num_tokens", "common < best.num_tokens",
             KV_TEST, "PrefixCacheTest.OfMatchesThatAreAsLongATailIsTaken"),
    Mutation("a tail that is taken over stays evictable", "src/kv/prefix_cache.cc",
             "set_evictable(block_id, false); unlink(block_id);", "unlink(block_id);",
             KV_TEST, "PrefixCacheTest.ATailTakenOverIsTheCachesNoMore"),
    Mutation("a tail of several groups counts as one block", "src/kv/prefix_cache_nodes.cc",
             "counters_.num_evicted_blocks += beside.size();", "++counters_.num_evicted_blocks;",
             KV_TEST, "GroupTablesTest.ATailIsEvictedWhole"),
    Mutation("what has gone with its parent goes twice", "src/kv/prefix_cache_nodes.cc",
             "if (nodes_[id].is_evictable) forget(id);", "forget(id);",
             KV_TEST, "GroupTablesTest.ATailBehindAWindowIsClearedWithItsParent"),
    Mutation("an owner's cache is cleared for another", "src/kv/prefix_cache_nodes.cc",
             "if (nodes_[id].owner == wanted) found.push_back(id);", "found.push_back(id);",
             KV_TEST, "PrefixCacheTest.OwnersAreApartAndForgetTheirOwn"),
    Mutation("a scope that has gone is found", "src/kv/prefix_cache_nodes.cc",
             "scopes_.erase(scope.digest);", "", KV_TEST, "PrefixCacheTest.AScopeFindsNothingOfTheOneThatTakesItsPlace"),
    Mutation("a sibling goes on from one that has gone", "src/kv/prefix_cache_nodes.cc",
             "if (node.next != kNone) nodes_[node.next].previous = node.previous;", "",
             KV_TEST, "PrefixCacheTest.SiblingsStayWhicheverGoes"),
)

ANSWERS = (
    Mutation("a mark behind its own first byte", "src/answer/answer_parser.cc",
             "passed += held_.front(); held_.erase(0, 1);", "passed += std::exchange(held_, {});",
             ANSWER_TEST, "AnswerParser.AMarkMayStandBehindABeginningOfOne"),
    Mutation("white space before a closing tag that is cut off", "src/answer/answer_parser.cc",
             "kCallEndTag.starts_with(without_spare_brackets(held_))", "kCallEndTag.starts_with(held_)",
             ANSWER_TEST, "AnswerParser.ACallThatIsCutOffKeepsWhatCame"),
    Mutation("a call counts as told because the one before it was", "src/answer/answer_parser.cc",
             "has_told_call_ = false; const auto tools", "const auto tools",
             ANSWER_TEST, "AnswerParser.ASecondCallThatIsCutOffIsProse"),
    Mutation("a call's last name counts", "src/answer/json_call_reader.cc",
             "if (name_.empty()) name_ = string_of(text_);", "name_ = string_of(text_);",
             ANSWER_TEST, "AnswerParser.ACallsFirstNameCounts"),
    Mutation("a call without a name", "src/answer/json_call_reader.cc",
             "if (name_.empty()) return State::kBroken; if (!is_told_) {", "if (!is_told_) {",
             ANSWER_TEST, "AnswerParser.WhatIsNoCallIsProse"),
    Mutation("lists within lists without end", "src/answer/python_call_reader.cc",
             "place_ == text_.size() || depth > kMaxDepth", "place_ == text_.size()",
             ANSWER_TEST, "AnswerParser.WhatIsTooDeepOrTooLongIsNoCall"),
    Mutation("names without end", "src/answer/xml_call_reader.cc",
             "!may_be_tag || tag_.size() > kMaxTagBytes", "!may_be_tag",
             ANSWER_TEST, "AnswerParser.WhatIsTooDeepOrTooLongIsNoCall"),
    Mutation("what the answer's end decides is lost", "src/serving/answer_reader.cc",
             "for (AnswerPart& part : parser_->finish()) append_part(parts, part.kind, std::move(part.text));", "",
             SERVING_TEST, "AnswerReaderTest.TheLastPieceEndsTheAnswer"),
    Mutation("a thought where a grammar holds the answer", "src/serving/answer_reader.cc",
             "if (grammar && grammar->spec.kind != GrammarKind::kAnswer) parsing.begins_in_thought = false;", "",
             SERVING_TEST, "AnswerReaderTest.AGrammarThatHoldsTheWholeAnswerLeavesNoThought"),
    Mutation("functions besides the one that must be called", "src/serving/answer_reader.cc",
             "if (!use.function.empty()) names = {use.function};", "",
             SERVING_TEST, "AnswerReaderTest.AGrammarHasTheFunctionsThatMayBeCalled"),
)

MUTATIONS = (*SCHEDULER, *TABLES, *PREFIX_CACHE, *ANSWERS)
