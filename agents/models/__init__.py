from agents.models.agent import Agent
from agents.models.application import Application
from agents.models.call import Instruction, ModelCall
from agents.models.chain import Chain, ChainLink, DailyAnchor
from agents.models.decision import Decision
from agents.models.elicitation import Elicitation
from agents.models.envelope import Envelope
from agents.models.family import AgentVersion, Family, LineUp, LineUpEntry, Maker, Release
from agents.models.forecast import Forecast, RefusedForecast
from agents.models.ledger import JournalEntry, Position, Reversal, Settlement, Trade
from agents.models.manual_settlement import ManualSettlement
from agents.models.receipt import Attempt, Receipt, SigningKey
from agents.models.registration import Registration, Submission
from agents.models.run_setting import Maintenance, RunSetting
from agents.models.spending import CreditReading
from agents.models.task import Task
